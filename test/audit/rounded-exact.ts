import { attentionGradients, attentionOracle } from '../../oracles/index.js';
import { randomValues, type RandomValues } from '../../properties/problems/values.js';
import {
  auditGradients,
  judgeOutputs,
  judgeSplits,
  requestedRule,
  type KernelOutputs,
} from '../../src/audit/index.js';
import { formats, smallestSubnormal, type FormatName } from '../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { filledProblem, tensor } from '../setup/problems.js';
import { encode } from './damage.js';

/** What numbers of a tensor look like before they are scaled: by their index and a row's length. */
type Look = (random: RandomValues, columns: number) => (index: number) => number;

/** Sums of alike numbers round alike, which is where statistics that count on chance go wrong. */
const looks: Readonly<Record<string, Look>> = {
  normal: (random) => () => random.normal(),
  'of one sign': (random) => () => 1 + random.uniform(),
  constant: () => () => 1.203125,
  'constant in columns': (random, columns) => {
    const numbers = Array.from({ length: columns }, () => random.normal());
    return (index) => numbers[index % columns];
  },
  'nearly constant': (random) => {
    const spread = 2 ** -random.integer(4, 12);
    return () => 1.203125 + spread * random.normal();
  },
  'of many sizes': (random) => () => random.normal() * 2 ** -random.integer(0, 20),
  'mostly zeros': (random) => () => (random.uniform() < 0.9 ? 0 : random.normal()),
};

const pick = <T>(list: readonly T[], random: RandomValues): T =>
  list[random.integer(0, list.length - 1)];

/** Of inputs and of what comes out of them. */
const formatPairs: readonly (readonly [FormatName, FormatName])[] = [
  ['fp16', 'fp16'],
  ['fp16', 'fp16'],
  ['bf16', 'bf16'],
  ['fp32', 'fp32'],
  ['e4m3', 'bf16'],
  ['e5m2', 'fp16'],
];

/** Formats of eight bits come out of a forward pass too. */
const forwardPairs: readonly (readonly [FormatName, FormatName])[] = [
  ...formatPairs,
  ['e4m3', 'e4m3'],
  ['e5m2', 'e5m2'],
  ['bf16', 'fp32'],
];

/** Queries and keys: short, long, and very long rows and columns. */
const extents: readonly (readonly [number, number])[] = [
  [1, 1],
  [1, 700],
  [16, 1024],
  [16, 4096],
  [128, 192],
  [200, 40],
  [700, 3],
  [3, 300],
  [70, 70],
];

/** Correctly rounded exact values of one problem. */
export interface RoundedExact {
  /** What the problem is. */
  readonly words: string;
  /** All that an audit finds wrong with them: nothing. */
  readonly findings: () => readonly string[];
}

/** A power of two between what a format holds at most and far below its smallest number. */
function magnitude(format: FormatName, random: RandomValues): number {
  const top = Math.log2(formats[format].maxFinite);
  const bottom = Math.log2(smallestSubnormal(formats[format]));
  const turn = random.uniform();
  // Where numbers begin to be lost is looked at most.
  const near = bottom + formats[format].precision + 12 * random.uniform() - 4;
  const exponent =
    turn < 0.5
      ? near - 16 * random.uniform()
      : turn < 0.8
        ? bottom + (top - bottom) * random.uniform()
        : turn < 0.9
          ? 0
          : top - 4 * random.uniform();
  return 2 ** Math.min(exponent, top);
}

/** Keeps what a format holds, in it. */
const held = (format: FormatName, x: number) => {
  const { maxFinite } = formats[format];
  return Math.max(-maxFinite, Math.min(maxFinite, x));
};

function drawProblem(
  format: FormatName,
  ofValues: number,
  random: RandomValues,
): { readonly problem: Problem; readonly words: string } {
  const [queries, keys] = pick(extents, random);
  const dim = pick([4, 8, 16], random);
  const heads = pick([1, 1, 2], random);
  const kvHeads = pick([1, heads], random);
  const names = { q: pick(Object.keys(looks), random), k: pick(Object.keys(looks), random) };
  const ofV = pick(Object.keys(looks), random);
  const ofQueries = pick([1, 1, 0.01, 0, 6], random);
  const fill = (look: string, times: number) => {
    const number = looks[look](random, dim);
    return (i: number) => held(format, times * number(i));
  };
  const problem = filledProblem(
    { format, heads, kvHeads, queries, keys, dim },
    { q: fill(names.q, ofQueries), k: fill(names.k, 1), v: fill(ofV, ofValues) },
    { causal: random.uniform() < 0.2, scale: pick([1 / Math.sqrt(dim), 0.3], random) },
  );
  const words = `${heads}/${kvHeads}×${queries}×${keys}×${dim} ${format}, ${problem.causal ? 'causal, ' : ''}Q ${ofQueries} × ${names.q}, K ${names.k}, V 2^${Math.log2(ofValues).toFixed(1)} × ${ofV}`;
  return { problem, words };
}

/** Bias, sinks and dropout for some. */
function withFeatures(problem: Problem, random: RandomValues): Problem {
  const { batch, heads, queries, keys } = problemShape(problem);
  const maybe = (features: () => Partial<Problem>) => (random.uniform() < 0.15 ? features() : {});
  return {
    ...problem,
    ...maybe(() => {
      const shape = pick(
        [
          [1, heads, queries, keys],
          [1, 1, 1, keys],
          [1, 1, queries, 1],
        ],
        random,
      );
      return { bias: tensor('fp32', shape, () => random.normal()) };
    }),
    ...maybe(() => ({
      sink: { logits: tensor('fp32', [heads], () => random.normal()), inLse: true },
    })),
    ...maybe(() => ({
      dropout: {
        kept: {
          shape: [heads, queries, keys],
          data: new Uint8Array(batch * heads * queries * keys).map(() =>
            random.uniform() < 0.75 ? 1 : 0,
          ),
        },
        probability: 0.25,
      },
    })),
  };
}

/** Exact gradients of some problem and dO, correctly rounded. */
export function roundedGradientsCase(seed: number): RoundedExact {
  const random = randomValues(seed);
  const [format, output] = pick(formatPairs, random);
  const plain = drawProblem(format, random.uniform() < 0.6 ? 1 : magnitude(format, random), random);
  const problem = withFeatures(plain.problem, random);
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
  const look = pick(Object.keys(looks), random);
  const size = magnitude(output, random);
  const number = looks[look](random, vDim);
  const dout = tensor(output, [batch, heads, queries, vDim], (i) => held(output, size * number(i)));
  const words = `${plain.words}${problem.bias ? ', bias' : ''}${problem.sink ? ', sink' : ''}${problem.dropout ? ', dropout' : ''}, dO 2^${Math.log2(size).toFixed(1)} × ${look}`;
  const findings = () => {
    const exact = attentionGradients(problem, dout);
    const shapes = {
      dq: [batch, heads, queries, qkDim],
      dk: [batch, kvHeads, keys, qkDim],
      dv: [batch, kvHeads, keys, vDim],
      dbias: problem.bias?.shape ?? [],
      dsink: [heads],
    };
    const given = Object.entries(shapes).flatMap(([name, shape]) => {
      const found = exact[name as keyof typeof shapes];
      return found === null ? [] : [[name, encode(found.values, output, shape)] as const];
    });
    const gradients = Object.fromEntries(given) as Record<keyof typeof shapes, Tensor>;
    const { verdict } = auditGradients(problem, { dout, ...gradients }, { diagnose: false });
    return verdict.findings.map(({ statement }) => statement);
  };
  return { words, findings };
}

/** Exact attention of some problem, correctly rounded, with its LSE; and partial results where there are any. */
export function roundedOutputsCase(seed: number): RoundedExact {
  const random = randomValues(seed);
  const [format, output] = pick(forwardPairs, random);
  const smaller = formats[format].minExponent > formats[output].minExponent ? format : output;
  const plain = drawProblem(format, magnitude(smaller, random), random);
  const problem = withFeatures(plain.problem, random);
  const { batch, heads, queries, keys, vDim } = problemShape(problem);
  const splits = pick([2, 5], random);
  const block = Math.ceil(keys / splits);
  const isSplit = random.uniform() < 0.2 && keys > splits;
  const words = `${plain.words}${problem.bias ? ', bias' : ''}${problem.sink ? ', sink' : ''}${problem.dropout ? ', dropout' : ''} → ${output}${isSplit ? `, in blocks of ${block}` : ''}`;
  const roundedOf = (of: Problem, format: FormatName): KernelOutputs => {
    const { out, lse } = attentionOracle(of).quantities;
    return {
      out: encode(out.values, format, [batch, heads, queries, vDim]),
      lse: encode(lse.values, 'fp32', [batch, heads, queries]),
    };
  };
  const findings = () => {
    const outputs = roundedOf(problem, output);
    const { verdict } = judgeOutputs(problem, outputs, { diagnose: false });
    const found = verdict.findings.map(({ statement }) => statement);
    if (isSplit) {
      const counts = new Array<number>(batch).fill(keys);
      const { ranges } = requestedRule({ splits, keys: counts, block });
      const parts = ranges.map((keyRanges) => {
        const { sink: _sink, ...ofKeys } = problem;
        void _sink;
        return roundedOf({ ...ofKeys, keyRanges }, 'fp32');
      });
      const judged = judgeSplits({ problem, parts, outputs, request: { block } });
      for (const { audit } of judged.parts)
        found.push(...audit.verdict.findings.map(({ statement }) => `part: ${statement}`));
      if (judged.merge !== null && !judged.merge.pass) found.push('the merge');
    }
    return found;
  };
  return { words, findings };
}
