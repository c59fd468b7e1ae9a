import {
  allLanes,
  byteStoreOf,
  type ClusterLaunch,
  type ClusterRun,
  createMmaUnits,
  createTensorMap,
  type Instruction,
  runCluster,
  type RunOptions,
  type WarpProgram,
} from '../../src/machine/index.js';
import { arrive, expectBytes, fragment, meet, wait, words } from './launch.js';
import {
  allocate,
  boxBytes,
  commitTo,
  deallocate,
  halfRow,
  loadTile,
  matrixMap,
  moveRows,
  multiply,
  productOf,
  randomPatterns,
  tile,
} from './tile-product.js';

/** Steps of k of an output tile, output tiles, and buffers for operands. */
const steps = 3;
const tiles = 2;
const stages = 2;
const k = steps * tile.k;
const n = tiles * tile.n;

/** Warps 0 to 3 bring results out, one loads, one issues MMAs. */
const loadWarp = 4;
const mmaWarp = 5;
const warps = 6;

const full = [0, 8];
const empty = [16, 24];
const accumulatorFull = 32;
const accumulatorEmpty = 40;
const tensorAddress = 48;
const stage = (i: number) => ({ a: 1024 + i * 4096, b: 1024 + i * 4096 + boxBytes.a });
const output = 16384;
const outputRowBytes = tile.n * 4;

const parityOf = (use: number) => (Math.floor(use / stages) % 2) as 0 | 1;
const opposite = (parity: 0 | 1) => (1 - parity) as 0 | 1;

function* load(a: Uint16Array<ArrayBuffer>, b: Uint16Array<ArrayBuffer>): WarpProgram {
  const [aMap, bMap] = [matrixMap('A', a, k, tile.m), matrixMap('B', b, k, tile.n)];
  for (let use = 0; use < steps * tiles; use++) {
    const i = use % stages;
    yield wait(empty[i], opposite(parityOf(use)), 'operands empty: load waits');
    yield { ...expectBytes(full[i], boxBytes.a + boxBytes.b), site: 'operands full: expected' };
    const first = (use % steps) * tile.k;
    yield loadTile(aMap, [first, 0], stage(i).a, full[i]);
    yield loadTile(bMap, [first, Math.floor(use / steps) * tile.n], stage(i).b, full[i]);
  }
}

const afterFence = (who: string): Instruction => ({
  op: 'tcgen05.fence::after_thread_sync',
  site: `${who}: fence after`,
});
const beforeFence = (who: string): Instruction => ({
  op: 'tcgen05.fence::before_thread_sync',
  site: `${who}: fence before`,
});

function* multiplyTiles(): WarpProgram {
  yield allocate(32, tensorAddress);
  yield meet('bar.sync', 1, 5, 'tensor memory allocated');
  for (let use = 0; use < steps * tiles; use++) {
    const i = use % stages;
    const step = use % steps;
    const parity = (Math.floor(use / steps) % 2) as 0 | 1;
    if (step === 0) {
      yield wait(accumulatorEmpty, opposite(parity), 'D empty: MMA waits');
      yield afterFence('MMA');
    }
    yield wait(full[i], parityOf(use), 'operands full: MMA waits');
    yield multiply({ ...stage(i), d: 0 }, step > 0);
    yield commitTo(empty[i], 'operands empty: MMA commits');
    if (step === steps - 1) yield commitTo(accumulatorFull, 'D full: MMA commits');
  }
  yield meet('bar.sync', 2, 5, 'tensor memory left');
  yield deallocate(32);
}

function* bringOut(warp: number, out: Uint32Array<ArrayBuffer>): WarpProgram {
  const map = createTensorMap({
    name: 'D',
    place: { store: byteStoreOf(out), offset: 0 },
    elementBytes: 4,
    swizzle: 'none',
    dims: [n, tile.m],
    strides: [n * 4],
    box: [tile.n, tile.m],
  });
  const address = fragment();
  const rows = fragment(halfRow);
  yield meet('bar.sync', 1, 5, 'tensor memory allocated');
  yield {
    ...words('ld.shared', tensorAddress, address),
    addresses: new Int32Array(32).fill(tensorAddress),
  };
  for (let i = 0; i < tiles; i++) {
    yield wait(accumulatorFull, (i % 2) as 0 | 1, 'D full: waits');
    yield afterFence('D');
    yield moveRows('tcgen05.ld', warp, address.words[0], rows, 'D: loaded');
    yield { op: 'tcgen05.wait::ld', site: 'D: loads awaited' };
    yield beforeFence('D');
    yield arrive(accumulatorEmpty, { lanes: allLanes, site: 'D empty: arrives' });
    // The store before has read the buffer.
    if (i > 0) {
      if (warp === 0)
        yield { op: 'cp.async.bulk.wait_group.read', pending: 0, site: 'output: read' };
      yield meet('bar.sync', 3, 4, 'output: free');
    }
    yield {
      op: 'st.shared',
      words: 4,
      fragment: rows,
      name: 'output',
      site: 'output: written',
      addresses: Int32Array.from(
        { length: 32 },
        (_, lane) => output + (16 * warp + (lane % 16)) * outputRowBytes + (lane >= 16 ? 16 : 0),
      ),
    };
    yield { op: 'fence.proxy.async', site: 'output: proxy fence' };
    yield meet('bar.sync', 4, 4, 'output: complete');
    if (warp !== 0) continue;
    yield {
      op: 'cp.async.bulk.tensor.global.shared',
      map,
      coordinates: [i * tile.n, 0],
      source: output,
      name: 'D',
      site: 'output: stored',
    };
    yield { op: 'cp.async.bulk.commit_group', site: 'output: group' };
  }
  if (warp === 0) yield { op: 'cp.async.bulk.wait_group', pending: 0, site: 'output: done' };
  yield meet('bar.sync', 2, 5, 'tensor memory left');
}

function* setUp(warp: number): WarpProgram {
  if (warp === 0)
    for (const [name, count, barriers] of [
      ['operands full', 1, full],
      ['operands empty', 1, empty],
      ['D full', 1, [accumulatorFull]],
      ['D empty', 128, [accumulatorEmpty]],
    ] as const)
      for (const barrier of barriers)
        yield { op: 'mbarrier.init', barrier, count, name, site: `${name}: initialised` };
  yield { op: 'fence.mbarrier_init', site: 'barriers: fenced' };
  yield meet('bar.sync', 0, warps, 'barriers initialised');
}

/** Changes the instructions of a warp on their way to the machine. */
export type Change = (program: WarpProgram, warp: number) => WarpProgram;

/** Leaves out the instructions at a site. */
export function without(site: string): Change {
  return function* (program) {
    for (const instruction of program) if (instruction.site !== site) yield instruction;
  };
}

const [a, b] = [randomPatterns(tile.m * k, 1), randomPatterns(n * k, 2)];

/** What a GEMM has to give: 64 × 16 from a k of 48, [m][n] fp32. */
export const expectedProduct: Uint32Array = productOf(a, b, { m: tile.m, n, k });

/** One tensor core for all runs, since it keeps the memory of its tiles. */
const mmaUnits = createMmaUnits('sm_100');

/** What a GEMM's run came to. */
export interface GemmRun extends ClusterRun {
  readonly out: Uint32Array;
}

/** A launch of the GEMM and where its result goes. */
export function gemmLaunch(change: Change = (program) => program): {
  launch: ClusterLaunch;
  out: Uint32Array;
} {
  const out = new Uint32Array(tile.m * n);
  const launch: ClusterLaunch = {
    ctas: 1,
    warps,
    warpName: (warp) => (warp === loadWarp ? 'load' : warp === mmaWarp ? 'MMA' : `output ${warp}`),
    allocate: (shared) => {
      shared.allocate('barriers', 1024, 1024);
      for (let i = 0; i < stages; i++) shared.allocate(`operands ${i}`, 4096, 1024);
      shared.allocate('output', 16384, 16384);
    },
    program: ({ warp }) => {
      const body =
        warp === loadWarp ? load(a, b) : warp === mmaWarp ? multiplyTiles() : bringOut(warp, out);
      return change(
        (function* () {
          yield* setUp(warp);
          yield* body;
        })(),
        warp,
      );
    },
  };
  return { launch, out };
}

/**
 * A GEMM as kernels pipeline it: TMA fills a ring of buffers, MMAs sum over k into tensor memory, warps
 * bring the result through registers and shared memory to TMA. Tensor memory and the output's buffer
 * serve one tile after the other.
 */
export function runGemm(options: RunOptions = {}, change?: Change): GemmRun {
  const { launch, out } = gemmLaunch(change);
  return { ...runCluster(launch, { mmaUnits, ...options }), out };
}
