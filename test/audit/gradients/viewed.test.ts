import { describe, expect } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { auditGradients } from '../../../src/audit/index.js';
import { describePlace } from '../../../src/audit/rows/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { normalProblem, seededRandom } from '../../kernels/features/index.js';
import { backwardKernel, drawDout, type BackwardOutputs } from '../../kernels/gradients/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Rows of a tensor [batch, heads, rows, columns] from others of it. */
function rowsFrom(tensor: Tensor, from: (row: number) => number): Tensor {
  const columns = tensor.shape.at(-1) ?? 1;
  const values = decodeTensor(tensor);
  const moved = values.map(
    (_, i) => values[from(Math.floor(i / columns)) * columns + (i % columns)],
  );
  return { ...tensor, data: encodeFromFloat64(formats[tensor.format], moved) };
}

type ViewOf = (tensor: Tensor) => Tensor;

const sizesOf = ({ shape }: Tensor) => {
  const [heads = 1, rows = 1] = shape.slice(-3);
  return { heads, rows, size: heads * rows };
};

/** The memory of [batch, rows, heads] where [batch, heads, rows] is read. */
const rowsFirst: ViewOf = (tensor) => {
  const { heads, rows, size } = sizesOf(tensor);
  return rowsFrom(tensor, (row) => {
    const at = row % size;
    return row - at + (at % heads) * rows + Math.floor(at / heads);
  });
};

/** The memory of [batch, heads, rows] where [batch, rows, heads] is read. */
const headsFirst: ViewOf = (tensor) => {
  const { heads, rows, size } = sizesOf(tensor);
  return rowsFrom(tensor, (row) => {
    const at = row % size;
    return row - at + (at % rows) * heads + Math.floor(at / rows);
  });
};

const directions = {
  'written as [batch, rows, heads, columns] and read as [batch, heads, rows, columns]': [
    rowsFirst,
    headsFirst,
  ],
  'written as [batch, heads, rows, columns] and read as [batch, rows, heads, columns]': [
    headsFirst,
    rowsFirst,
  ],
} as const satisfies Record<string, readonly [read: ViewOf, back: ViewOf]>;

const random = () => seededRandom(testSeed);

const problems = {
  grouped: () =>
    normalProblem(random(), {
      batch: 1,
      heads: 6,
      kvHeads: 2,
      queries: 50,
      keys: 70,
      format: 'fp16',
    }),
  batches: () => normalProblem(random(), { batch: 2, heads: 2, kvHeads: 2, queries: 40, keys: 60 }),
  causal: () => ({
    ...normalProblem(random(), { batch: 1, heads: 3, kvHeads: 3, queries: 64, keys: 64 }),
    causal: true,
    softcap: 3,
  }),
  sinks: () => ({
    ...normalProblem(random(), {
      batch: 1,
      heads: 4,
      kvHeads: 2,
      queries: 40,
      keys: 80,
      format: 'fp32',
    }),
    sink: {
      logits: { format: 'fp32' as const, shape: [4], data: Float32Array.of(1, 2, 3, 4) },
      inLse: true,
    },
  }),
} as const satisfies Record<string, () => Problem>;

type Input = 'q' | 'k' | 'v' | 'dout';

/** What a host views, and whether gradients are written by the same view. */
interface Host {
  readonly words: string;
  readonly inputs: readonly Input[];
  readonly isBack: boolean;
}

const hosts: readonly Host[] = [
  { words: 'Q, K and V are', inputs: ['q', 'k', 'v'], isBack: true },
  { words: 'Q, K, V and dO are', inputs: ['q', 'k', 'v', 'dout'], isBack: true },
  { words: 'K and V are', inputs: ['k', 'v'], isBack: true },
  { words: 'Q and K are', inputs: ['q', 'k'], isBack: true },
  { words: 'Q is', inputs: ['q'], isBack: true },
  { words: 'K is', inputs: ['k'], isBack: true },
  { words: 'V is', inputs: ['v'], isBack: true },
  { words: 'Q and dO are', inputs: ['q', 'dout'], isBack: true },
  { words: 'Q, K and V are', inputs: ['q', 'k', 'v'], isBack: false },
  { words: 'Q, K, V and dO are', inputs: ['q', 'k', 'v', 'dout'], isBack: false },
];

/** A correct kernel between views. */
function between(
  problem: Problem,
  dout: Tensor,
  { inputs, isBack }: Pick<Host, 'inputs' | 'isBack'>,
  [read, back]: readonly [ViewOf, ViewOf],
): BackwardOutputs {
  const of = (name: Input, tensor: Tensor) => (inputs.includes(name) ? read(tensor) : tensor);
  const { q, k, v } = problem;
  const given = { ...problem, q: of('q', q), k: of('k', k), v: of('v', v) };
  const delta = testSeed % 2 === 0 ? 'output' : 'weights';
  const made = backwardKernel({ delta })(given, of('dout', dout));
  const written = (name: Input, tensor: Tensor) =>
    isBack && inputs.includes(name) ? back(tensor) : tensor;
  return {
    ...made,
    out: inputs.includes('dout') ? back(made.out) : made.out,
    dq: written('q', made.dq),
    dk: written('k', made.dk),
    dv: written('v', made.dv),
  };
}

/** What is said of the gradients of a kernel between views, and where. */
function said(
  problem: Problem,
  host: Pick<Host, 'inputs' | 'isBack'>,
  view: readonly [ViewOf, ViewOf],
) {
  const dout = drawDout(seededRandom(testSeed + 1), problem);
  const given = between(problem, dout, host, view);
  const reference = attentionOracle(problem);
  const { diagnosis } = auditGradients(problem, { dout, ...given }, { reference }).verdict;
  return diagnosis;
}

const cases = Object.keys(problems).flatMap((name) =>
  hosts.flatMap((host) => Object.keys(directions).map((way) => ({ name, host, way }))),
) as readonly { name: keyof typeof problems; host: Host; way: keyof typeof directions }[];

describe('gradients of inputs in another order of axes than they are read in', () => {
  inTurn.each(sampled(cases, 5))('$name: $host.words $way', ({ name, host, way }) => {
    const diagnosis = said(problems[name](), host, directions[way]);
    expect(diagnosis?.id).toBe('view-for-transpose');
    // By the stored LSE of the same forward, the backward pass alone may read so.
    expect(diagnosis?.equivalents.filter((id) => host.isBack || id !== 'inputs-layout')).toEqual(
      [],
    );
    expect(diagnosis?.sentence).toContain(`${host.words} ${way}, in the forward and the backward`);
    expect(diagnosis?.sentence.includes('written so')).toBe(host.isBack);
    expect(describePlace(diagnosis!.place)).toBe('everywhere');
  });

  inTurn.each(sampled(Object.keys(problems) as (keyof typeof problems)[], 1))(
    '%s: no such view is named where rows are moved otherwise',
    (name) => {
      const problem = problems[name]();
      const { queries, heads } = problemShape(problem);
      // A view of one batch entry's memory that begins one row late.
      const late: ViewOf = (tensor) => {
        const { size } = sizesOf(tensor);
        const seen = rowsFirst(tensor);
        return rowsFrom(seen, (row) => row - (row % size) + (((row % size) + 1) % size));
      };
      expect(queries * heads).toBeGreaterThan(2);
      const inputs: readonly Input[] = ['q', 'k', 'v'];
      const diagnosis = said(problem, { inputs, isBack: false }, [late, headsFirst]);
      expect(diagnosis?.id).toBe('unexplained');
    },
  );
});
