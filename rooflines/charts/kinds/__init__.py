"""One file per kind of chart: its menus, its view, what it needs, and the value `KIND`."""
