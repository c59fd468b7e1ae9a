import {
  type FormatName,
  formats,
  round,
  type RoundingMode,
  ulp,
  unitRoundoff,
} from '../../../formats/index.js';
import type { Problem } from '../../../problem/index.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';
import { type Rounder, rounderTo } from '../../premises/declared-row.js';
import { outputRounding } from '../../bounds/index.js';

/** A score that is rounded on its way from the dot product. */
interface RoundedScore {
  readonly id: string;
  readonly technique: string;
  readonly statement: string;
  readonly score: (dot: number) => number;
}

const shortFormats = ['bf16', 'fp16'] as const;
/** Products that a sum in a short format takes at a time. */
const chunks = [1, 16] as const;

function roundedScores({ scale, softcap }: Problem): RoundedScore[] {
  const cap = (x: number) => (softcap === null ? x : softcap * Math.tanh(x / softcap));
  return shortFormats.flatMap((name): RoundedScore[] => {
    const nearest = rounderTo(name);
    const down: Rounder = (x) => round(formats[name], x, { rounding: 'toward-zero' });
    const common = { id: 'scores-narrow', technique: 'qk-accumulate' };
    const scaled = (held: Rounder, how: string): RoundedScore[] => [
      {
        ...common,
        statement: `the scores are ${how} to ${name}`,
        score: (dot) => cap(held(dot * scale)),
      },
      ...(softcap === null
        ? []
        : [
            {
              ...common,
              statement: `the capped scores are ${how} to ${name}`,
              score: (dot: number) => held(cap(dot * scale)),
            },
          ]),
      ...(Number.isInteger(Math.log2(Math.abs(scale)))
        ? []
        : [
            {
              ...common,
              statement: `the scores are ${how} to ${name} before the scale`,
              score: (dot: number) => cap(held(dot) * scale),
            },
          ]),
      {
        ...common,
        statement: `the scores, in base 2, are ${how} to ${name}`,
        score: (dot) => held(cap(dot * scale) * Math.LOG2E) * Math.LN2,
      },
    ];
    const ofTanh: RoundedScore[] =
      softcap === null
        ? []
        : [
            {
              id: 'tanh-narrow',
              technique: 'scale-subtract',
              statement: `the softcap's tanh is rounded to ${name}`,
              score: (dot) => softcap * nearest(Math.tanh((dot * scale) / softcap)),
            },
          ];
    return [...ofTanh, ...scaled(nearest, 'rounded'), ...scaled(down, 'truncated')];
  });
}

/** A hypothesis whose weights are the softmax of other scores. */
function ofScores(
  { reader }: HypothesisContext,
  about: Omit<Hypothesis, 'predict'>,
  scores: (row: SampleRow) => (key: number) => number,
): Hypothesis {
  return {
    ...about,
    predict: (row) => {
      const faulty = reader.maskedScores(row.row, row.ranges, scores(row));
      return predictWeighted(row, softmaxRow(faulty, reader.valuesOf(row.row, row.kv)));
    },
  };
}

/** q·k as a sum that is rounded after every `chunk` products. */
function shortDot(
  q: Float64Array,
  keys: Float64Array,
  key: number,
  held: Rounder,
  chunk: number,
): number {
  let sum = 0;
  for (let t = 0; t < q.length; t++) {
    sum += q[t] * keys[key * q.length + t];
    if ((t + 1) % chunk === 0) sum = held(sum);
  }
  return held(sum);
}

function* roundedQueries(context: HypothesisContext): Generator<Hypothesis> {
  const { reader } = context;
  const { q, scale } = reader.problem;
  const format: FormatName = q.format === 'fp64' ? 'fp32' : q.format;
  const held = rounderTo(format);
  const ways = [
    ['the scale', scale],
    ['the scale and log2 e', scale * Math.LOG2E],
  ] as const;
  for (const [what, factor] of ways) {
    if (Number.isInteger(Math.log2(Math.abs(factor)))) continue;
    yield ofScores(
      context,
      {
        id: 'scaled-query-narrow',
        technique: 'scale-subtract',
        statement: `Q is multiplied by ${what} and rounded to ${format} again before its products`,
      },
      (row) => {
        const query = reader.query(row.row).map((x) => held(x * factor));
        const keys = reader.keys(row.kv);
        return (key) => {
          let dot = 0;
          for (let t = 0; t < query.length; t++) dot += query[t] * keys[key * query.length + t];
          return reader.score(dot / factor, row.row, key);
        };
      },
    );
  }
}

/** Scores, or the operands and sums that they are made of, kept in too short a format. */
export const scorePrecisionHypotheses: HypothesisFamily = function* (context) {
  const { reader } = context;
  for (const { id, technique, statement, score } of roundedScores(reader.problem))
    yield ofScores(context, { id, technique, statement }, (row) => {
      const dots = reader.dots(row.row, row.kv);
      return (key) => score(dots[key]);
    });
  yield* roundedQueries(context);
  for (const name of shortFormats)
    for (const chunk of chunks) {
      const held = rounderTo(name);
      const by = chunk === 1 ? 'every product' : `every ${chunk} products`;
      yield ofScores(
        context,
        {
          id: 'product-narrow',
          technique: 'qk-accumulate',
          statement: `Q·Kᵀ is summed in ${name}, rounded after ${by}`,
          cause: `Q·Kᵀ is summed in ${name}`,
        },
        (row) => {
          const query = reader.query(row.row);
          const keys = reader.keys(row.kv);
          return (key) => reader.score(shortDot(query, keys, key, held, chunk), row.row, key);
        },
      );
    }
};

const shorter = ['fp16', 'bf16', 'e4m3', 'e5m2'] as const satisfies readonly FormatName[];

const directed: readonly (readonly [mode: RoundingMode, words: string])[] = [
  ['toward-zero', 'truncated'],
  ['down', 'rounded down'],
  ['up', 'rounded up'],
];

/** Half an ulp in the direction of a rounding: its mean effect on an output. */
function shift(mode: RoundingMode, x: number): number {
  return mode === 'toward-zero' ? -Math.sign(x) : mode === 'down' ? -1 : 1;
}

/** The output rounded in another way than once to nearest. */
export const outputPrecisionHypotheses: HypothesisFamily = function* ({ input, sample }) {
  const {
    outputs: {
      out: { format: outputFormat },
    },
  } = input;
  for (const [mode, words] of directed)
    yield {
      id: mode === 'toward-zero' ? 'output-truncated' : 'output-rounded-one-way',
      technique: 'output-round',
      statement: `the output is ${words} to ${outputFormat}, not rounded to nearest`,
      predict: ({ correct }) => {
        const half = correct.out.map((x) => outputRounding(outputFormat, x, 0));
        return {
          ...correct,
          out: correct.out.map((x, c) => x + shift(mode, x) * half[c]),
          limit: correct.limit.map((x, c) => x + half[c]),
        };
      },
    };
  const rows = sample.filter((row) => row.damaged);
  for (const name of shorter) {
    const format = formats[name];
    if (unitRoundoff(format) <= unitRoundoff(formats[outputFormat])) continue;
    const isHeld = (x: number) => round(format, x) === x;
    if (!rows.every(({ observed }) => observed.every(isHeld))) continue;
    yield {
      id: 'output-rounded-twice',
      technique: 'output-round',
      statement: `every element of the output is a number of ${name}: it was rounded to ${name} before ${outputFormat}`,
      predict: ({ correct, vDim }: SampleRow) => {
        // Near a tie the rounding error of the rest decides which way an element goes.
        const deviation = Math.sqrt(correct.noise / vDim);
        let flips = 0;
        const limit = correct.limit.map((x, c) => {
          const step = ulp(format, correct.out[c]);
          flips += step * Math.min(step, deviation);
          return x + step;
        });
        const out = correct.out.map((x) => round(format, x));
        return { ...correct, out, limit, noise: correct.noise + flips };
      },
    };
  }
};
