import type { RegisterWidth } from '../instructions/index.js';

/** The place of a thread, which its special registers depend on. Source: PTX ISA, "Special Registers". */
export interface ThreadPlace {
  /** Threads of the CTA and CTAs of the grid and of the cluster, each in x, y, z. */
  readonly block: readonly [number, number, number];
  readonly grid: readonly [number, number, number];
  readonly cluster: readonly [number, number, number];
  /** The CTA in the grid. */
  readonly cta: readonly [number, number, number];
  /** Its warp, and the lane in it. */
  readonly warp: number;
  readonly lane: number;
  readonly isExplicitCluster: boolean;
  readonly staticSharedBytes: number;
  readonly dynamicSharedBytes: number;
}

/** A special register: its width and its value in a thread. */
export interface SpecialRegister {
  readonly width: RegisterWidth;
  /** Null for a register that counts: each read gives more than the one before. */
  readonly value: ((place: ThreadPlace) => number) | null;
}

const axes = ['x', 'y', 'z'] as const;
type Triple = readonly [number, number, number];

function fixed(value: (place: ThreadPlace) => number): SpecialRegister {
  return { width: 32, value };
}

function triples(
  name: string,
  value: (place: ThreadPlace) => Triple,
): readonly (readonly [string, SpecialRegister])[] {
  const parts = axes.map(
    (axis, i) => [`${name}.${axis}`, fixed((place) => value(place)[i])] as const,
  );
  return parts;
}

/** The thread's number in its CTA. */
function threadNumber({ warp, lane }: ThreadPlace): number {
  return warp * 32 + lane;
}

function threadOf(place: ThreadPlace): Triple {
  const [x, y] = place.block;
  const number = threadNumber(place);
  return [number % x, Math.floor(number / x) % y, Math.floor(number / (x * y))];
}

const divide = (one: Triple, other: Triple): Triple => [
  Math.ceil(one[0] / other[0]),
  Math.ceil(one[1] / other[1]),
  Math.ceil(one[2] / other[2]),
];
const clusterId = ({ cta, cluster }: ThreadPlace): Triple => [
  Math.floor(cta[0] / cluster[0]),
  Math.floor(cta[1] / cluster[1]),
  Math.floor(cta[2] / cluster[2]),
];
const clusterCta = ({ cta, cluster }: ThreadPlace): Triple => [
  cta[0] % cluster[0],
  cta[1] % cluster[1],
  cta[2] % cluster[2],
];
const volume = ([x, y, z]: Triple) => x * y * z;

function rankIn([x, y, z]: Triple, [width, height]: Triple): number {
  return x + width * (y + height * z);
}

const counting = (width: RegisterWidth): SpecialRegister => ({ width, value: null });

/**
 * Special registers by name. Values that a GPU decides by itself (`%smid`, the slot of a warp) are those of a GPU
 * on which each CTA has an SM of its own, in the order of the grid.
 */
export const specialRegisters: ReadonlyMap<string, SpecialRegister> = new Map([
  ...triples('%tid', threadOf),
  ...triples('%ntid', ({ block }) => block),
  ...triples('%ctaid', ({ cta }) => cta),
  ...triples('%nctaid', ({ grid }) => grid),
  ...triples('%clusterid', clusterId),
  ...triples('%nclusterid', ({ grid, cluster }) => divide(grid, cluster)),
  ...triples('%cluster_ctaid', clusterCta),
  ...triples('%cluster_nctaid', ({ cluster }) => cluster),
  ['%cluster_ctarank', fixed((place) => rankIn(clusterCta(place), place.cluster))],
  ['%cluster_nctarank', fixed(({ cluster }) => volume(cluster))],
  [
    '%is_explicit_cluster',
    { width: 'pred', value: ({ isExplicitCluster }) => Number(isExplicitCluster) },
  ],
  ['%laneid', fixed(({ lane }) => lane)],
  ['%warpid', fixed(({ warp }) => warp)],
  ['%nwarpid', fixed(({ block }) => Math.ceil(volume(block) / 32))],
  ['%smid', fixed(({ cta, grid }) => rankIn(cta, grid))],
  ['%nsmid', fixed(({ grid }) => volume(grid))],
  ['%gridid', { width: 64, value: () => 0 }],
  ['%lanemask_eq', fixed(({ lane }) => (1 << lane) >>> 0)],
  ['%lanemask_lt', fixed(({ lane }) => ((1 << lane) - 1) >>> 0)],
  ['%lanemask_le', fixed(({ lane }) => (2 ** (lane + 1) - 1) >>> 0)],
  ['%lanemask_gt', fixed(({ lane }) => (2 ** 32 - 2 ** (lane + 1)) >>> 0)],
  ['%lanemask_ge', fixed(({ lane }) => (2 ** 32 - 2 ** lane) >>> 0)],
  ['%dynamic_smem_size', fixed(({ dynamicSharedBytes }) => dynamicSharedBytes)],
  [
    '%total_smem_size',
    fixed(({ staticSharedBytes, dynamicSharedBytes }) => staticSharedBytes + dynamicSharedBytes),
  ],
  [
    '%aggr_smem_size',
    fixed(({ staticSharedBytes, dynamicSharedBytes }) => staticSharedBytes + dynamicSharedBytes),
  ],
  ['%clock', counting(32)],
  ['%clock_hi', fixed(() => 0)],
  ['%clock64', counting(64)],
  ['%globaltimer', counting(64)],
  ['%globaltimer_lo', counting(32)],
  ['%globaltimer_hi', fixed(() => 0)],
]);
