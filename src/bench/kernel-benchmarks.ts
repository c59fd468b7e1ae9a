import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  createFa4Forward,
  createForwardEngine,
  fa4Configuration,
  fa4Recipe,
  type ForwardEngine,
  prepareFa4Program,
  tileQueries,
} from '../../kernels/index.js';
import { formats, patternsOf } from '../formats/index.js';
import { type Problem, problemShape } from '../problem/index.js';
import { type Benchmark, type Quantity, rateOf, secondsOf } from './benchmark.js';
import { normalProblem } from './normal-problem.js';

const dim = 128;
const repetitions = 200;
const quickRepetitions = 1;
/**
 * Lengths of a problem [1, length, 128] on one thread; its memory is that of a problem that needs no more than a tile.
 */
const lengths = { full: 4096, quick: 128 };

/** An engine with a tile of normal queries and a block of normal keys and values. */
function preparedEngine(): ForwardEngine {
  const problem = normalProblem('bf16', { heads: 1, seqlen: tileQueries, dim });
  const configuration = fa4Configuration(problem, problemShape(problem));
  const scale = Math.fround(problem.scale * Math.LOG2E);
  const recipe = fa4Recipe({ configuration, format: 'bf16', scale }, problem.scale);
  const engine = createForwardEngine(recipe, { qkDim: dim, vDim: dim });
  const { q, k, v } = problem;
  engine.queries.set(patternsOf(q.data, formats.bf16));
  engine.keys.set(patternsOf(k.data, formats.bf16));
  engine.values.set(patternsOf(v.data, formats.bf16));
  for (let row = 0; row < tileQueries; row++) engine.visible.set([0, tileQueries], 2 * row);
  engine.begin(tileQueries);
  engine.packBlock();
  engine.scores();
  engine.softmax(true, true);
  return engine;
}

/** A stage of the forward on one tile against one block, again and again. */
function stage(
  quantity: Quantity,
  amount: number,
  run: (engine: ForwardEngine) => void,
): Benchmark {
  return {
    quantities: [quantity],
    prepare: (quick) => {
      const engine = preparedEngine();
      const times = quick ? quickRepetitions : repetitions;
      return rateOf(times * amount, () => {
        for (let i = 0; i < times; i++) run(engine);
      });
    },
  };
}

const emulateProcess = fileURLToPath(new URL('./emulate-process.js', import.meta.url));

/** The whole forward in a process of its own: rate and peak memory. */
function whole(threads: number, target: number): Benchmark {
  const on = threads === 1 ? 'one thread' : `${threads} threads`;
  const name = `fa4 forward, [1, 4096, 128] bf16, ${on}`;
  return {
    quantities: [
      { name, unit: 'multiply-adds/s', better: 'higher', target },
      { name: `${name}: peak memory`, unit: 'bytes', better: 'lower' },
    ],
    prepare: (quick) => ({
      measure: async () => {
        const length = quick ? lengths.quick : lengths.full;
        const { stdout } = await promisify(execFile)(process.execPath, [
          ...[emulateProcess, String(length), String(dim), String(threads)],
        ]);
        const [seconds, peakBytes] = JSON.parse(stdout) as [number, number];
        return [(2 * length * length * dim) / seconds, peakBytes];
      },
    }),
  };
}

const multiplyAdds = tileQueries * tileQueries * dim;
/** Elements of P: scale, subtract, exponential, conversion, row sum. */
const weights = tileQueries * tileQueries;

/** The stages of the fa4 forward, and the whole of it on one thread and on all cores. */
export const forwardBenchmarks: readonly Benchmark[] = [
  stage(
    { name: 'tensor core: S = Q·Kᵀ', unit: 'multiply-adds/s', better: 'higher', target: 1.6e9 },
    multiplyAdds,
    (engine) => engine.scores(),
  ),
  stage(
    { name: 'tensor core: O += P·V', unit: 'multiply-adds/s', better: 'higher', target: 1.6e9 },
    multiplyAdds,
    (engine) => engine.output(),
  ),
  stage({ name: 'fa4 softmax', unit: 'weights/s', better: 'higher' }, weights, (engine) => {
    // The scores are overwritten by weights, which serve as well.
    engine.softmax(false, true);
  }),
  whole(1, 1e9),
  ...(availableParallelism() > 1 ? [whole(availableParallelism(), 1.8e9)] : []),
];

const size = { heads: 1, seqlen: 1024, dim: 128 };
const quickSize = { heads: 1, seqlen: 128, dim: 64 };

/** Maximum time of the emulated execution, in times of the forward. */
const mostForwards = 5;
/** Maximum seconds for the whole problem with race detection, on one core. */
const mostSeconds = 20;

function runForward(problem: Problem): void {
  const { tiles, runTile } = createFa4Forward(problem);
  for (let tile = 0; tile < tiles; tile++) runTile(tile);
}

function runMachine(problem: Problem, races: boolean): void {
  const { clusters, run } = prepareFa4Program(problem, {}, { ctas: 1, races });
  for (let cluster = 0; cluster < clusters; cluster++) run(cluster);
}

const name = `fa4 on the machine, [1, ${size.seqlen}, ${size.dim}] bf16`;

/** FlashAttention-4's program on the emulated Blackwell cluster, one CTA, beside the forward alone. */
export const machineBenchmarks: readonly Benchmark[] = [
  {
    quantities: [
      {
        ...({ unit: 'forwards', better: 'lower', target: mostForwards } as const),
        name: `${name}: time`,
      },
      {
        ...({ unit: 's', better: 'lower', target: mostSeconds } as const),
        name: `${name}, with race detection`,
      },
    ],
    prepare: (quick) => {
      const problem = normalProblem('bf16', quick ? quickSize : size);
      return {
        measure: () => {
          const forward = secondsOf(() => runForward(problem));
          const machine = secondsOf(() => runMachine(problem, false));
          return [machine / forward, secondsOf(() => runMachine(problem, true))];
        },
      };
    },
  },
];
