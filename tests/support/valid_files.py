"""Valid configs and catalogues with every key, for mutations."""

CONFIGS = (
    """\
sweeps:
  mlp: &mlp
    operation: matmul
    grid: {B: {from: 1, to: 64, factor: 2}, D: [512, 1.024e3], F: D}
    dtypes: [bf16, {x: bf16, w: int8, out: bf16, compute: bf16}]
    chips: [mine, h100-sxm]
    sharding: [none, {split: D, then: all-reduce}]
    shards: [1, 2]
    thresholds: [B, shards]
    tile: {B: 128}
    efficiency: {math: 0.9}
    columns: [flops, t_lower_s, bound]
  again:
    <<: *mlp
    chips: mine-fast
    sharding: column/gather-x
    thresholds: [D]
    tile: null
    columns: all
    flops: leading
    rows_per_part: 10
  nodes:
    operation: matmul
    grid: {B: [8, 64], D: 512, F: 256}
    dtypes: bf16
    chips: [mine, h100-sxm]
    sharding: [{split: B, first: all-to-all x, then: all-to-all}, column/gather-x]
    shards: [1, 8, 2x4]
    network: [[near, far], ici, [net]]
    shares: [1, 0.9]
    columns: [network_inner_bytes, t_network_s, bound]
chips:
  mine:
    name: My chip
    source: {bytes_per_s: notes}
    efficiency: {memory: 0.8}
    calibration: {bf16: {math: 0.8, overhead_s: 1.0e-6}}
    units:
      matrix: {bf16: {flops_per_s: 1.97e14, note: dense}, int8: {flops_per_s: 3.94e14}}
      vector: {bf16: {flops_per_s: 1.0e13}}
    memory: {hbm: {bytes_per_s: 8.2e11, capacity_bytes: 1.6e10}, l2: {bytes_per_s: 8.0e12}}
    networks:
      ici: {bytes_per_s: 4.5e10, links: 4, topology: torus, ring_multiple: 16, domain: 64,
            hop_latency_s: 1.0e-6}
      net: {bytes_per_s: 5.0e9, topology: switch}
      near: {bytes_per_s: 2.5e10, links: 18, topology: switch, domain: 4, hop_latency_s: 6.0e-7}
      far: {bytes_per_s: 5.0e9, topology: switch, domain: unlimited}
    power: {watts: 300}
    prices: [{usd_per_hour: 1.2, provider: someone, date: "2026-01-01"}]
  mine-fast: {base: mine, memory.hbm.bytes_per_s: 9.0e11, units.matrix.fp8.flops_per_s: 8.0e14,
              source: my own notes}
model-sweeps:
  serve:
    models:
      - meta-llama/Llama-3.1-8B
      - {name: own, layers: 2, D: 64, V: 128, attention: {N: 4, K: 2, H: 16},
         moe: {E: 8, k: 2, Fe: 32}}
    phase: [decode, prefill]
    grid: {B: {from: 1, to: 64, factor: 8}, S: [128, 4096]}
    dtypes: [bf16, {name: w8, weights: int8, cache: bf16, activations: bf16, compute: bf16}]
    chips: [mine, h100-sxm]
    splits: [{tp: 1}, {tp: 2x2}, {tp: 2, dp: 2, ep: 4}]
    network: [ici, [near, far]]
    routing: same
    cache_split: batch
    prices: {provider: someone}
    targets: {t_step_s: [0.01], time: t_ops_s}
    thresholds: [B, S, chips]
    rows_per_part: 20
  ask:
    models: {name: dense, layers: 2, D: 64, V: 128, tied: true, attention: {N: 4, K: 2, H: 16},
             mlp: {F: 96}}
    grid: {B: [1, 8]}
    requests: [{input: 64, output: 16}]
    dtypes: fp8
    chips: mine-fast
    layers: false
charts:
  - {chart: roofline, sweep: again, chips: [mine-fast], dtypes: [bf16], title: Mine}
pathvars: {results: here}
""",
    """\
sweeps:
  decode:
    operation: "BSD,DF->BSF"
    grid: {B: [1, 8], S: {sequences: 8, tokens_per_sequence: 2048, replicas: 2}}
    shapes:
      - {name: llama-3-8b-up, D: 4096, F: 14336}
      - {name: "7b down, twice", D: 14336, F: "4096"}
    dtypes: [bf16, w4a16]
    chips: [h100-sxm, tpu-v5e]
    memory: [hbm, l2]
    network: nvlink
    unit: matrix
    thresholds: [S]
    on_unsupported: skip
  dots:
    operation: dot
    grid: {D: {from: 16, to: 100, step: 7}}
    dtypes: fp32
    chips: [tpu-v5p]
    flops: exact
    thresholds: null
charts: auto
""",
)

CHIPS = """\
sources:
  notes: {title: Notes, publisher: Nobody, date: 2026-01-01}
chips:
  h100-sxm:
    name: A chip
    vendor: Somebody
    year: 2022
    status: sold
    aliases: [h100]
    units: {matrix: {bf16: {flops_per_s: 9.89e14, source: notes, confidence: vendor, halved: true,
                            printed_with_sparsity: 1.979e15}}}
    memory: {hbm: {bytes_per_s: 3.35e12, capacity_bytes: 80000000000, technology: HBM3,
                   source: [notes, others]}}
    networks: {nvlink: {bytes_per_s: 2.5e10, links: 18, topology: switch, domain: 8,
                        estimate: false}}
    measured: [{what: a matmul, fraction_of_peak: 0.8, source: notes}]
  tpu-v5e:
    units: {matrix: {bf16: {flops_per_s: 1.97e14}, int8: {flops_per_s: 394000000000000}},
            vector: {fp32: {flops_per_s: 3e12}}}
    memory: {hbm: {bytes_per_s: 8.1e11}, l2: {capacity_bytes: 1.3e8}}
    networks: {ici: {bytes_per_s: 4.5e10, links: 4, topology: torus, ring_multiple: 16, domain: 16}}
  tpu-v5p: {base: tpu-v5e, units.vector.fp32.flops_per_s: 7.0e12, estimate: true}
"""

DTYPES = """\
formats:
  fp32: {bits: 32, source: IEEE 754}
  bf16: {bits: 16}
  fp8: {bits: 8}
  int8: {bits: 8, note: two's complement}
  int4: {bits: 4, scale_bits: 16, block: 128}
combinations:
  bf16: {x: bf16, w: bf16, out: bf16, compute: bf16, note: all of it}
  fp32: {x: fp32, w: fp32, out: fp32, compute: fp32}
  w4a16: {x: bf16, w: int4, out: bf16, compute: bf16}
"""
