import {
  formats,
  round,
  ulp,
  unitRoundoff,
  type FormatName,
  type RoundingMode,
} from '../../../formats/index.js';
import { outputRounding } from '../../bounds/index.js';
import type { HypothesisFamily, SampleRow } from '../hypothesis.js';

const shorter = ['fp16', 'bf16', 'e4m3', 'e5m2'] as const satisfies readonly FormatName[];

const directed: readonly (readonly [mode: RoundingMode, words: string])[] = [
  ['toward-zero', 'truncated'],
  ['down', 'rounded down'],
  ['up', 'rounded up'],
];

/** Half an ulp in the direction of a rounding: what it does to an output on average. */
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
