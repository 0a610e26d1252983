"""One module per kind of chart: menus, view, needs, and `KIND`."""
