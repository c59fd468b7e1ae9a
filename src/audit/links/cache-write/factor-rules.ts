import { factorSpan, type FactorTerms, type Spans } from '../../../../oracles/index.js';
import {
  codes,
  factorRules,
  cachePartShape,
  tells,
  type CachePart,
  type CacheWrite,
  type FactorFloor,
  type FactorRule,
  type Scaling,
} from '../../../problem/index.js';
import { readAt } from './judge-row.js';
import { createMeasure, supposedPart } from './supposition.js';

/** A rule of factors, and how many of those stored follow it. */
export interface FittedRule {
  readonly terms: FactorTerms;
  readonly fits: number;
}

/** The rules of the factors of a part, the one that fits best first. */
export interface PartRules {
  readonly fitted: readonly FittedRule[];
  /** Number of factors that a rule can be held against. */
  readonly of: number;
  /** Whether the rule was declared, and whether some of it, such as its floor, was not. */
  readonly isDeclared: boolean;
  readonly isInferred: boolean;
}

/** Floors that kernels take: of amax PyTorch-like code's and DeepGEMM's, of factors fp32's least normal number and vLLM's. */
const usualFloors: readonly (FactorFloor | null)[] = [
  null,
  ...[1e-4, 1e-5, 1e-8, 1e-10, 1e-12].map((least) => ({ of: 'amax', least }) as const),
  ...[2 ** -126, 1e-12, 1e-10, 1 / (448 * 512)].map((least) => ({ of: 'factor', least }) as const),
];

/** The numbers that amax may be divided by where nobody says it. */
function usualMaxima(part: CachePart): number[] {
  const code = codes[part.numbers.code];
  const others: Readonly<Partial<Record<string, number>>> = { e4m3: 240, int8: 128 };
  const other = others[code.name];
  return other === undefined ? [code.maximum] : [code.maximum, other];
}

function usualRules({ factors }: Scaling): FactorRule[] {
  const isPower = factors.code === 'e8m0';
  const computed = factorRules.filter((rule) => rule !== 'given' && !(isPower && rule === 'amax'));
  // A factor of a whole tensor is one input among others as a rule.
  return tells(factors, 'slot') ? computed : [...computed, 'given'];
}

/** All terms that agree with what is declared, the most usual first. */
function candidates(part: CachePart, scaling: Scaling): FactorTerms[] {
  const rules = scaling.rule === null ? usualRules(scaling) : [scaling.rule];
  // A rule that is declared without a maximum has the code's.
  const usual = scaling.rule === null ? usualMaxima(part) : [codes[part.numbers.code].maximum];
  const maxima = scaling.maximum === null ? usual : [scaling.maximum];
  const floors =
    scaling.floor === null ? usualFloors : [scaling.floor === 'none' ? null : scaling.floor];
  return rules.flatMap((rule) => {
    const dividesMaximum = rule === 'amax' || rule === 'power-up';
    return (dividesMaximum ? maxima : maxima.slice(0, 1)).flatMap((maximum) =>
      (rule === 'given' ? [null] : floors).map((floor) => ({
        rule,
        maximum,
        floor,
        division: scaling.division,
        global: scaling.global,
        factorCode: codes[scaling.factors.code],
        code: codes[part.numbers.code],
      })),
    );
  });
}

/** A stored factor and the largest size of what shares it. */
interface FactorSample {
  readonly found: number;
  readonly amax: readonly [number, number];
}

/** The factors of a part that a rule can be held against, each once. */
function samplesOf(write: CacheWrite, part: CachePart, scaling: Scaling, values: Spans) {
  const measure = createMeasure(write.slots);
  const supposed = supposedPart(part, null, values);
  const { heads, columns } = cachePartShape(part);
  const samples: FactorSample[] = [];
  const perSlot = tells(scaling.factors, 'slot');
  const ofHeads = tells(scaling.factors, 'head') ? heads : 1;
  let isFirst = true;
  for (const [token, slot] of write.slots.entries()) {
    if (slot < 0 || (!perSlot && !isFirst)) continue;
    isFirst = false;
    for (let head = 0; head < ofHeads; head++)
      for (let group = 0; group * scaling.columns < columns; group++) {
        const amax = measure(supposed, { part: 0, token, head, group });
        const found = readAt(write.after, scaling.factors, slot, head, group);
        if (amax[0] > 0 && amax[1] < Infinity) samples.push({ found, amax });
      }
  }
  return samples;
}

function fitsOf(samples: readonly FactorSample[], terms: FactorTerms): number {
  return samples.filter(({ found, amax }) => {
    const span = factorSpan(amax, terms);
    return span === null ? terms.rule === 'given' : found >= span[0] && found <= span[1];
  }).length;
}

/**
 * The rule that the factors of a part follow: the declared one, or of those that agree with what is declared the one that most of the
 * stored factors follow. null for a part without factors. A factor that is given follows from nothing, so it is a rule of last resort.
 */
export function rulesOf(write: CacheWrite, part: CachePart, values: Spans): PartRules | null {
  const { scaling } = part;
  if (scaling === null) return null;
  const all = candidates(part, scaling);
  const samples = samplesOf(write, part, scaling, values);
  const isGiven = ({ terms }: FittedRule) => terms.rule === 'given';
  const fitted = all.map((terms) => ({ terms, fits: fitsOf(samples, terms) }));
  const computed = fitted.filter((one) => !isGiven(one)).sort((a, b) => b.fits - a.fits);
  const given = fitted.filter(isGiven);
  const isWhole = computed.length > 0 && samples.length > 0 && computed[0].fits === samples.length;
  return {
    fitted: isWhole || given.length === 0 ? [...computed, ...given] : [...given, ...computed],
    of: samples.length,
    isDeclared: scaling.rule !== null,
    isInferred: all.length > 1,
  };
}

/** Whether a rule is that of the stored factors: it was declared, or more than half of them follow it. */
export function isSettled({ fitted, of, isDeclared }: PartRules): boolean {
  const [first] = fitted;
  return isDeclared || first.terms.rule === 'given' || of === 0 || 2 * first.fits > of;
}

function floorWords(floor: FactorFloor | null): string {
  if (floor === null) return '';
  const least = floor.least === 2 ** -126 ? '2^-126' : String(floor.least);
  return floor.of === 'amax' ? `, amax at least ${least}` : `, at least ${least}`;
}

/** A rule in words: "amax/448, amax at least 1e-10". */
export function ruleWords({ rule, maximum, floor, global, code }: FactorTerms): string {
  const quotient = `amax/${maximum}${global === 1 ? '' : `/${global}`}`;
  const words: Readonly<Record<FactorRule, string>> = {
    given: 'given',
    amax: quotient,
    'power-up': `the power of two at or above ${quotient}`,
    'mx-floor': `2^(floor(log2 amax) - ${code.maxExponent})`,
    'mx-ceil': `2^(ceil(log2 amax) - ${code.maxExponent})`,
    'mx-even': `2^(floor(log2 of amax rounded to ${code.precision} digits) - ${code.maxExponent})`,
  };
  return `${words[rule]}${floorWords(floor)}`;
}

/** What shares a factor, in words: "by token and head, block of 32 columns". */
export function groupWords(part: CachePart, { factors, columns }: Scaling): string {
  const shape = cachePartShape(part);
  const axes = [
    ...(tells(factors, 'slot') ? ['token'] : []),
    ...(tells(factors, 'head') && shape.heads > 1 ? ['head'] : []),
    ...(columns < shape.columns ? [`block of ${columns} columns`] : []),
  ];
  return axes.length === 0 ? 'of the whole tensor' : `by ${axes.join(' and ')}`;
}
