import { createFa4Forward, prepareFa4Program } from '../../kernels/index.js';
import type { Problem } from '../problem/index.js';
import { secondsOf, type Benchmark } from './benchmark.js';
import { normalProblem } from './normal-problem.js';

const size = { heads: 1, seqlen: 1024, dim: 128 };
const quickSize = { heads: 1, seqlen: 128, dim: 64 };

/** The emulated execution is not to take more than this many times the forward's time. */
const mostForwards = 5;
/** Seconds for the whole problem with race detection, on one core. */
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
