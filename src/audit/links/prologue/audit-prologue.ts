import {
  isLegal,
  legalNumbers,
  prologueValues,
  type LegalNumbers,
  type NumberTerms,
  type Spans,
} from '../../../../oracles/index.js';
import {
  decodeTensor,
  formats,
  smallestSubnormal,
  unitRoundoff,
  type Tensor,
} from '../../../formats/index.js';
import { codes, usualRounding, type CodeName, type Rotary } from '../../../problem/index.js';
import { formatNumber, listed } from '../../../words/index.js';
import { foundCause, unexplainedCause, type FoundCause } from '../../conduct/causes.js';
import { reachLinkVerdict, type LinkAudit, type LinkCheck } from '../link-audit.js';
import type { ProloguePart } from './prologue-fault.js';
import { prologueFaults } from './prologue-faults.js';

/** A tensor, its prologue, and what a kernel made of it. */
export interface JudgedPart extends ProloguePart {
  readonly output: Tensor & { readonly format: Extract<CodeName, 'fp32' | 'bf16' | 'fp16'> };
}

/** What a kernel does to q, k and v before attention. */
export interface GivenPrologue {
  readonly parts: readonly JudgedPart[];
  /** Settings in words. */
  readonly words: readonly string[];
}

/** What a part may hold, and what it holds. */
interface PartJudgement {
  readonly part: JudgedPart;
  readonly spans: Spans;
  readonly values: Float64Array;
  readonly wrong: Uint8Array;
}

function termsOf({ output }: JudgedPart): NumberTerms {
  const code = codes[output.format];
  const rounding = { ...usualRounding, overflow: 'special' } as const;
  return { code, rounding, division: null, isProduct: false };
}

/** The numbers that a right kernel may store for an element; null where nothing is judged. */
function legalAt({ low, high }: Spans, i: number, terms: NumberTerms): LegalNumbers | null {
  return legalNumbers([low[i], high[i]], null, terms);
}

/** Marks the elements that are none of what spans allow. */
function wrongIn(part: JudgedPart, spans: Spans, values: Float64Array): Uint8Array {
  const terms = termsOf(part);
  return Uint8Array.from(values, (value, i) => {
    const legal = legalAt(spans, i, terms);
    return legal === null || isLegal(value, legal) ? 0 : 1;
  });
}

function judgePart(part: JudgedPart): PartJudgement {
  const spans = prologueValues(part.input, part.prologue);
  const values = decodeTensor(part.output);
  return { part, spans, values, wrong: wrongIn(part, spans, values) };
}

/** The share of its bound that an element uses: the radius of what a right kernel has, and one rounding of that. */
function shareAt({ part, spans, values }: PartJudgement, i: number): number {
  const format = formats[part.output.format];
  const [low, high] = [spans.low[i], spans.high[i]];
  const [middle, radius] = [(low + high) / 2, (high - low) / 2];
  const rounding = unitRoundoff(format) * (Math.abs(middle) + radius) + smallestSubnormal(format);
  const share = Math.abs(values[i] - middle) / (radius + rounding);
  return Number.isNaN(share) ? 0 : share;
}

function elementWords({ part: { input, name } }: PartJudgement, i: number): string {
  const [, heads, columns] = input.shape;
  const row = Math.floor(i / columns);
  return `${name}, token ${Math.floor(row / heads)}, head ${row % heads}, column ${i % columns}`;
}

/** Number of elements of which a right kernel may have any number. */
function unboundedOf({ spans: { low, high } }: PartJudgement): number {
  return low.reduce((count, x, i) => count + (high[i] - x === Infinity ? 1 : 0), 0);
}

/** The reason why nothing of a part is judged; null where something is. */
function unjudgedReason(judged: PartJudgement, unbounded: number): string | null {
  const { name, input } = judged.part;
  if (decodeTensor(input).every((x) => x === 0)) return `every number of ${name} is 0`;
  return unbounded === judged.values.length ? `no number of ${name} has a bound` : null;
}

/** The angles' largest error, in radians, from which on a remark is made. */
const coarseAngle = 0.01;

/** What of a prologue its numbers cannot show, a clause each. */
function notesOf(judged: readonly PartJudgement[]): string[] {
  const rotaries = judged.flatMap(({ part }) => part.prologue?.rotary ?? []);
  const isStill = ({ positions, rows }: Rotary) =>
    positions.every((row) => (rows?.[row] ?? row) === 0);
  const errors = rotaries.flatMap(({ errors }) => (errors === undefined ? [] : [errors.cos]));
  const largest = errors.flatMap((all) => [...all]).reduce((a, b) => Math.max(a, b), 0);
  const unbounded = judged.reduce((count, one) => count + unboundedOf(one), 0);
  return [
    ...(rotaries.length > 0 && rotaries.every(isStill)
      ? ['every position is 0, where a rotation does nothing']
      : []),
    ...(largest > coarseAngle
      ? [
          `angles that a kernel makes in fp32 err by up to ${formatNumber(largest)} at these positions; with its tables in the dump, rope_cos and rope_sin, bounds are narrow`,
        ]
      : []),
    ...(unbounded === 0 ? [] : [`${unbounded} numbers have no bound`]),
  ];
}

function checkOf(judged: PartJudgement): LinkCheck {
  const { part, spans, values, wrong } = judged;
  const terms = termsOf(part);
  let [worst, most, free] = [0, 0, 0];
  for (let i = 0; i < values.length; i++) {
    const legal = legalAt(spans, i, terms);
    if (legal !== null && legal.low < legal.high) free++;
    const share = shareAt(judged, i);
    if (share > most) [worst, most] = [i, share];
  }
  const first = wrong.indexOf(1);
  const at = wrong[worst] === 1 ? worst : first;
  const count = wrong.reduce((total, one) => total + one, 0);
  const exact = (spans.low[at] + spans.high[at]) / 2;
  const unbounded = unboundedOf(judged);
  const unjudged = count > 0 ? null : unjudgedReason(judged, unbounded);
  return {
    name: part.name,
    label: `${part.name} behind the prologue`,
    parts: `numbers of ${part.name}`,
    claim:
      part.prologue === null
        ? `${part.name} is as it was`
        : `${part.name} is what rounding leaves of the exact numbers`,
    checked: unjudged === null ? values.length - unbounded : 0,
    wrong: count,
    free: count === 0 && unjudged === null ? free - unbounded : 0,
    worstShare: part.prologue === null || count > 0 || unjudged !== null ? null : most,
    statement:
      count === 0
        ? null
        : `${elementWords(judged, at)}: got ${formatNumber(values[at])}, exact ${formatNumber(exact)} ± ${formatNumber((spans.high[at] - spans.low[at]) / 2)} before it is rounded to ${part.output.format}`,
    isWorstCase: true,
    unjudged,
    isRequired: true,
  };
}

/** Whether spans say something of every number: an infinite radius would explain anything. */
function isTelling({ low, high }: Spans): boolean {
  return low.every((x, i) => !(high[i] - x === Infinity));
}

/** The faults that explain every number of the wrong parts. */
function explanations(wrongParts: readonly PartJudgement[], given: GivenPrologue) {
  return prologueFaults.filter(({ change }) =>
    wrongParts.every(({ part, values }) => {
      const prologue = change(part, given.parts);
      if (prologue === null) return false;
      const spans = prologueValues(part.input, prologue);
      return isTelling(spans) && !wrongIn(part, spans, values).includes(1);
    }),
  );
}

function explain(judged: readonly PartJudgement[], given: GivenPrologue): FoundCause {
  const wrongParts = judged.filter(({ wrong }) => wrong.includes(1));
  const names = wrongParts.map(({ part }) => part.name);
  const [first, ...others] = explanations(wrongParts, given);
  if (first === undefined) {
    const counts = wrongParts.map(({ part, wrong }) => {
      const count = wrong.reduce((total, one) => total + one, 0);
      return `${count} of ${wrong.length} numbers of ${part.name} are wrong`;
    });
    return unexplainedCause(counts);
  }
  const where = judged.length === names.length ? '' : ` (${listed(names)})`;
  return foundCause(
    { id: first.id, sentence: `${first.sentence}${where}` },
    [`with it, every number of ${listed(names)} would be right`],
    others.filter(({ id }) => id !== first.id),
  );
}

function describe({ parts, words }: GivenPrologue): string {
  const tensors = parts.map(({ name, input: { shape, format }, output }) => {
    const [tokens, heads, columns] = shape;
    return `${name} of ${tokens} tokens, ${heads} heads, ${columns} columns, ${format} to ${output.format}`;
  });
  return [...tensors, ...words].join('; ');
}

/**
 * Judges what a kernel does to q, k and v before attention: an RMS norm, a rotation of pairs of columns and a factor. Each number has to
 * be a rounding of one that a right kernel may have: the exact one, within the errors of fp32 in any order of operations.
 */
export function auditPrologue(given: GivenPrologue): LinkAudit {
  const judged = given.parts.map(judgePart);
  const checks = judged.map(checkOf);
  const [{ input }] = given.parts;
  return {
    contract: 'prologue',
    description: describe(given),
    settings: {
      tokens: input.shape[0],
      tensors: given.parts.map(({ name }) => name).join(', '),
    },
    checks,
    verdict: reachLinkVerdict(checks, () => explain(judged, given), notesOf(judged)),
    arithmetic:
      'sums of squares in fp32 in any order, a reciprocal root within 2^-22, products and sums with one rounding each, and one rounding of the output',
    falseAlarmRate: null,
  };
}
