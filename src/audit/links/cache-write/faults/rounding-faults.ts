import { codes, type Code, type CodeName } from '../../../../problem/index.js';
import { formats, round } from '../../../../formats/index.js';
import type { NumberTerms } from '../../../../../oracles/index.js';
import type { SupposedPart, Supposition } from '../supposition.js';
import { mapSpans, withParts, withValues, type WriteFault } from './write-fault.js';

/** A rounding with a fault; null where a part cannot have it. */
interface RoundingFault {
  readonly id: string;
  readonly sentence: string;
  readonly change: (of: SupposedPart) => SupposedPart | null;
}

function withTerms(of: SupposedPart, change: Partial<NumberTerms>): SupposedPart {
  return { ...of, numberTerms: { ...of.numberTerms, ...change } };
}

function withRound(of: SupposedPart, change: (x: number, code: Code) => number): SupposedPart {
  const { code } = of;
  const changed: Code = { ...code, round: (x, rounding) => code.round(change(x, code), rounding) };
  return withTerms(of, { code: changed });
}

function inFormats(
  names: readonly CodeName[],
  change: (of: SupposedPart) => SupposedPart | null,
): RoundingFault['change'] {
  return (of) => (names.includes(of.code.name) ? change(of) : null);
}

/** Stored codes that are of another format of as many bits. */
function inOtherFormat(from: CodeName, to: CodeName): RoundingFault {
  return {
    id: 'other-format',
    sentence: `numbers are stored as ${to}, where the cache has ${from}`,
    change: inFormats([from], (of) => ({
      ...withTerms(of, { code: codes[to] }),
      numbers: { ...of.numbers, code: to },
    })),
  };
}

/** NaN as a number. */
function nanAs(x: number, words: string): RoundingFault {
  return {
    id: 'nan-as-number',
    sentence: `NaN is stored as ${words}`,
    change: (of) =>
      withValues(
        of,
        mapSpans(of.values, (y) => (Number.isNaN(y) ? x : y)),
      ),
  };
}

const wrongRoundings: readonly RoundingFault[] = [
  {
    id: 'truncation',
    sentence: 'numbers are cut off, not rounded to nearest',
    change: (of) => withTerms(of, { rounding: { ...of.rounding, mode: 'toward-zero' } }),
  },
  {
    id: 'ties',
    sentence: 'ties are rounded away from zero where they go to even, or the reverse',
    change: inFormats(['int8'], (of) => {
      const mode = of.rounding.mode === 'nearest-away' ? 'nearest-even' : 'nearest-away';
      return withTerms(of, { rounding: { ...of.rounding, mode } });
    }),
  },
  {
    id: 'no-saturation',
    sentence:
      'numbers beyond the largest are not brought to it: they become infinite or NaN, or wrap around',
    change: (of) => withTerms(of, { rounding: { ...of.rounding, overflow: 'special' } }),
  },
  {
    id: 'saturation',
    sentence: 'numbers beyond the largest are brought to it, where they become infinite or NaN',
    change: (of) => withTerms(of, { rounding: { ...of.rounding, overflow: 'saturate' } }),
  },
  {
    id: 'saturation-maximum',
    sentence: 'numbers are brought to at most 240, the largest of e4m3fnuz, where e4m3 has 448',
    change: inFormats(['e4m3'], (of) => withRound(of, (x) => Math.min(240, Math.max(-240, x)))),
  },
  {
    id: 'negative-zero',
    sentence: 'negative numbers that round to zero are stored as -0, which is NaN in this format',
    change: inFormats(['e4m3fnuz'], (of) => {
      const { code } = of;
      const changed: Code = {
        ...code,
        round: (x, rounding) => {
          const rounded = code.round(x, rounding);
          return rounded === 0 && (x < 0 || Object.is(x, -0)) ? NaN : rounded;
        },
      };
      return withTerms(of, { code: changed });
    }),
  },
  inOtherFormat('e4m3', 'e4m3fnuz'),
  inOtherFormat('e4m3fnuz', 'e4m3'),
  inOtherFormat('e4m3', 'e5m2'),
  inOtherFormat('e5m2', 'e4m3'),
  inOtherFormat('e4m3', 'int8'),
  inOtherFormat('int8', 'e4m3'),
  inOtherFormat('bf16', 'fp16'),
  inOtherFormat('fp16', 'bf16'),
  ...(['bf16', 'fp16'] as const).map((name): RoundingFault => ({
    id: 'rounded-twice',
    sentence: `numbers are rounded to ${name} before they are rounded to what is stored`,
    change: inFormats(['e4m3', 'e5m2', 'e2m1', 'int8', 'e4m3fnuz'], (of) =>
      withRound(of, (x) => round(formats[name], x)),
    ),
  })),
  {
    id: 'division',
    sentence: 'numbers are multiplied by a rounded reciprocal, where they have to be divided',
    change: (of) =>
      of.numberTerms.division === 'divide' ? withTerms(of, { division: 'reciprocal' }) : null,
  },
  {
    id: 'division',
    sentence: 'numbers are divided, where they have to be multiplied by a reciprocal',
    change: (of) =>
      of.numberTerms.division === 'reciprocal' ? withTerms(of, { division: 'divide' }) : null,
  },
  {
    id: 'nibbles-exchanged',
    sentence: 'the two numbers of each byte are exchanged',
    change: inFormats(['e2m1'], (of) => {
      const { low, high } = of.values;
      const turn = (all: Float64Array) => all.map((_, i) => all[i ^ 1]);
      const turned = turn(low);
      return withValues(of, { low: turned, high: low === high ? turned : turn(high) });
    }),
  },
  nanAs(Infinity, 'the largest number'),
  nanAs(-Infinity, 'the least number'),
  nanAs(0, '0'),
];

/** Writers that round, saturate or encode wrongly. */
export function* roundingFaults(right: Supposition): Generator<WriteFault> {
  for (const { id, sentence, change } of wrongRoundings) {
    if (right.parts.every((of) => change(of) === null)) continue;
    // The factors stay those of the right numbers.
    const { parts } = withParts(right, (of) => change(of) ?? of);
    yield { id, sentence, supposed: { ...right, parts } };
  }
}
