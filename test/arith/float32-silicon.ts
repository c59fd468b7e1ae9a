/**
 * Bits captured on an NVIDIA H200 (sm_90, CUDA 13.0) by float32-silicon.cu: for each instruction a
 * hash of its results over 2^17 patterns of `float32Pattern` with the seed below, NaNs (which the
 * device always returned as 7fffffff) included.
 */
export const silicon = {
  seed: 20260801,
  patterns: 2 ** 17,
  /** Hash of all operands, which shows that the patterns are those of the device. */
  operands: 0xe02ef2c1,
  results: {
    'add.rn.f32': 0xbf4ce65f,
    'add.rz.f32': 0x5c31b6eb,
    'add.rm.f32': 0x29d6a62b,
    'add.rp.f32': 0xc06f602b,
    'add.rn.ftz.f32': 0x9b44b2df,
    'add.rz.ftz.f32': 0x8807e630,
    'add.rm.ftz.f32': 0x0055a4c0,
    'add.rp.ftz.f32': 0xdddf9e4b,
    'mul.rn.f32': 0x2435b5cf,
    'mul.rz.f32': 0x8a178741,
    'mul.rm.f32': 0xa61ed019,
    'mul.rp.f32': 0xd0b784a8,
    'mul.rn.ftz.f32': 0xa713993f,
    'mul.rz.ftz.f32': 0x5da40124,
    'mul.rm.ftz.f32': 0x4ea18c2a,
    'mul.rp.ftz.f32': 0x3b91ea1c,
    'fma.rn.f32': 0xac8a5c33,
    'fma.rz.f32': 0x6e57a60f,
    'fma.rm.f32': 0xb735ec13,
    'fma.rp.f32': 0xc8b9b7a0,
    'fma.rn.ftz.f32': 0x640dbff1,
    'fma.rz.ftz.f32': 0xa7f9cfde,
    'fma.rm.ftz.f32': 0xabb75705,
    'fma.rp.ftz.f32': 0x35dd9f45,
  },
} as const;

export type Instruction = keyof typeof silicon.results;

/** Operands around the smallest normal number, and the bits of each instruction in order. */
export interface Probe {
  readonly about: string;
  readonly operands: readonly [number, number, number];
  readonly add: readonly string[];
  readonly multiply: readonly string[];
  readonly fma: readonly string[];
}

/** Results in the order rn, rz, rm, rp and then the same with .ftz. */
export const probes: readonly Probe[] = [
  {
    about: 'product (1 − 2^−24)·2^−126',
    operands: [0x3f7fffff, 0x00800000, 0x00000000],
    add: '3f7fffff 3f7fffff 3f7fffff 3f800000 3f7fffff 3f7fffff 3f7fffff 3f800000'.split(' '),
    multiply: '00800000 007fffff 007fffff 00800000 00000000 00000000 00000000 00000000'.split(' '),
    fma: '00800000 007fffff 007fffff 00800000 00000000 00000000 00000000 00000000'.split(' '),
  },
  {
    about: 'product (1 − 2^−26)·2^−126',
    operands: [0x3f7ff800, 0x00800400, 0x00000000],
    add: '3f7ff800 3f7ff800 3f7ff800 3f7ff801 3f7ff800 3f7ff800 3f7ff800 3f7ff801'.split(' '),
    multiply: '00800000 007fffff 007fffff 00800000 00800000 00000000 00000000 00800000'.split(' '),
    fma: '00800000 007fffff 007fffff 00800000 00800000 00000000 00000000 00800000'.split(' '),
  },
  {
    about: 'product −(1 − 2^−26)·2^−126',
    operands: [0xbf7ff800, 0x00800400, 0x80000000],
    add: 'bf7ff800 bf7ff7ff bf7ff800 bf7ff7ff bf7ff800 bf7ff7ff bf7ff800 bf7ff7ff'.split(' '),
    multiply: '80800000 807fffff 80800000 807fffff 80800000 80000000 80800000 80000000'.split(' '),
    fma: '80800000 807fffff 80800000 807fffff 80800000 80000000 80800000 80000000'.split(' '),
  },
  {
    about: 'the first product, by a subnormal operand',
    operands: [0x3f800400, 0x007ffc00, 0x00000000],
    add: '3f800400 3f800400 3f800400 3f800401 3f800400 3f800400 3f800400 3f800400'.split(' '),
    multiply: '00800000 007fffff 007fffff 00800000 00000000 00000000 00000000 00000000'.split(' '),
    fma: '00800000 007fffff 007fffff 00800000 00000000 00000000 00000000 00000000'.split(' '),
  },
  {
    about: '2^−126 − 2^−150',
    operands: [0x1a000000, 0x9a000000, 0x00800000],
    add: '00000000 00000000 80000000 00000000 00000000 00000000 80000000 00000000'.split(' '),
    multiply: '80000000 80000000 80000001 80000000 80000000 80000000 80000000 80000000'.split(' '),
    fma: '00800000 007fffff 007fffff 00800000 00000000 00000000 00000000 00000000'.split(' '),
  },
  {
    about: '2^−126 − 2^−151',
    operands: [0x19800000, 0x99800000, 0x00800000],
    add: '00000000 00000000 80000000 00000000 00000000 00000000 80000000 00000000'.split(' '),
    multiply: '80000000 80000000 80000001 80000000 80000000 80000000 80000000 80000000'.split(' '),
    fma: '00800000 007fffff 007fffff 00800000 00800000 00000000 00000000 00800000'.split(' '),
  },
  {
    about: '−2^−126 + 2^−192',
    operands: [0x0f800000, 0x0f800000, 0x80800000],
    add: '10000000 10000000 10000000 10000000 10000000 10000000 10000000 10000000'.split(' '),
    multiply: '00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000'.split(' '),
    fma: '80800000 807fffff 80800000 807fffff 80800000 80000000 80800000 80000000'.split(' '),
  },
  {
    about: '2^−192 and a subnormal addend',
    operands: [0x0f800000, 0x0f800000, 0x807fffff],
    add: '10000000 10000000 10000000 10000000 10000000 10000000 10000000 10000000'.split(' '),
    multiply: '00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000'.split(' '),
    fma: '807fffff 807ffffe 807fffff 807ffffe 00000000 00000000 00000000 00000000'.split(' '),
  },
  {
    about: 'product −2^−192',
    operands: [0x0f800000, 0x8f800000, 0x00000000],
    add: '00000000 00000000 80000000 00000000 00000000 00000000 80000000 00000000'.split(' '),
    multiply: '80000000 80000000 80000001 80000000 80000000 80000000 80000000 80000000'.split(' '),
    fma: '80000000 80000000 80000001 80000000 80000000 80000000 80000000 80000000'.split(' '),
  },
  {
    about: 'a subnormal operand',
    operands: [0x807fffff, 0x3f800000, 0x80000000],
    add: '3f800000 3f7fffff 3f7fffff 3f800000 3f800000 3f800000 3f800000 3f800000'.split(' '),
    multiply: '807fffff 807fffff 807fffff 807fffff 80000000 80000000 80000000 80000000'.split(' '),
    fma: '807fffff 807fffff 807fffff 807fffff 80000000 80000000 80000000 80000000'.split(' '),
  },
  {
    about: 'a subnormal sum',
    operands: [0x00c00000, 0x80800000, 0x00000000],
    add: '00400000 00400000 00400000 00400000 00000000 00000000 00000000 00000000'.split(' '),
    multiply: '80000000 80000000 80000001 80000000 80000000 80000000 80000000 80000000'.split(' '),
    fma: '80000000 80000000 80000001 80000000 80000000 80000000 80000000 80000000'.split(' '),
  },
  {
    about: '−1e-10 and 12582912',
    operands: [0xaedbe6ff, 0x4b400000, 0x00000000],
    add: '4b400000 4b3fffff 4b3fffff 4b400000 4b400000 4b3fffff 4b3fffff 4b400000'.split(' '),
    multiply: 'baa4ed3f baa4ed3f baa4ed40 baa4ed3f baa4ed3f baa4ed3f baa4ed40 baa4ed3f'.split(' '),
    fma: 'baa4ed3f baa4ed3f baa4ed40 baa4ed3f baa4ed3f baa4ed3f baa4ed40 baa4ed3f'.split(' '),
  },
];
