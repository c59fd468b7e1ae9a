import type { FormatName } from '../../../formats/index.js';
import { formatNumber } from '../../../words/index.js';
import { foundCause, unexplainedCause, type FoundCause } from '../../conduct/causes.js';
import { describePlace, placeOfRows, type Place } from '../../rows/index.js';
import {
  explainingFaults,
  lseShares,
  mergedLseFaults,
  mergeParts,
  outShares,
  weightError,
  type MergedParts,
  type PartialResults,
  type StoredMerge,
} from '../../splits/index.js';
import { reachLinkVerdict, type LinkAudit, type LinkCheck } from '../link-audit.js';

/** Sizes of what is merged: rows are batch × heads × queries. */
export interface MergeShape {
  readonly batch: number;
  readonly heads: number;
  readonly queries: number;
  readonly dim: number;
}

/** Numbers that a kernel stored in a format. */
interface StoredNumbers {
  readonly format: FormatName;
  readonly values: Float64Array;
}

/** Partial results with what a kernel merged them to. */
export interface GivenMerge {
  readonly shape: MergeShape;
  /** [parts, batch, heads, queries, …]; LSEs are natural logarithms. */
  readonly parts: PartialResults;
  /** [batch, heads, queries, dim]; null where it is not given. */
  readonly out: StoredNumbers | null;
  /** [batch, heads, queries], natural logarithms; null where it is not given. */
  readonly lse: StoredNumbers | null;
  /** What O is multiplied by before it is stored, and the parts are not; 1 where nobody says it. */
  readonly factor?: number;
  /** Whose LSEs were in base 2 before, as the report says: "the parts", "the merged LSE". */
  readonly ofBase2?: readonly string[];
}

/** Rows that use more than their bound. */
function wrongRows(shares: Float64Array): number[] {
  return [...shares.keys()].filter((row) => !(shares[row] <= 1));
}

function placeOf(rows: readonly number[], { batch, heads, queries, dim }: MergeShape): Place {
  const shape = {
    batch,
    heads,
    kvHeads: heads,
    groupSize: 1,
    queries,
    keys: 1,
    qkDim: dim,
    vDim: dim,
  };
  return placeOfRows(rows, { shape });
}

function worstRow(shares: Float64Array): number {
  return shares.reduce(
    (most, used, row) => (used > shares[most] || Number.isNaN(used) ? row : most),
    0,
  );
}

/** "sequence 1, head 2, query 5". */
function rowWords(row: number, { batch, heads, queries }: MergeShape): string {
  return [
    ...(batch > 1 ? [`sequence ${Math.floor(row / (heads * queries))}`] : []),
    ...(heads > 1 ? [`head ${Math.floor(row / queries) % heads}`] : []),
    `query ${row % queries}`,
  ].join(', ');
}

/** A row's element that is farthest from exact. */
function outStatement(
  row: number,
  { values, factor = 1 }: StoredMerge,
  merged: MergedParts,
  shape: MergeShape,
): string {
  const { dim } = shape;
  let most = 0;
  const exact = (i: number) => factor * merged.out[row * dim + i];
  const error = (i: number) => Math.abs(values[row * dim + i] - exact(i));
  for (let i = 1; i < dim; i++) if (!(error(i) <= error(most))) most = i;
  const at = row * dim + most;
  return `O at ${rowWords(row, shape)}, column ${most}: got ${formatNumber(values[at])}, the merge of the parts is ${formatNumber(exact(most))}`;
}

/** The largest error of weights, relative, with which a bound of a merge says something: at 1 zeros would pass. */
const mostWeightError = 0.5;

/** Number of rows that pass without being judged: their merge is NaN, as are their parts, or LSEs are so large that fp32 has no bound. */
function unjudgedRows(
  shares: Float64Array,
  parts: PartialResults,
  { lse, out }: MergedParts,
): number {
  const { rows, dim } = parts;
  let count = 0;
  for (let row = 0; row < rows; row++) {
    const exact = out.subarray(row * dim, (row + 1) * dim);
    const isNaN = Number.isNaN(lse[row]) || exact.some(Number.isNaN);
    if (shares[row] <= 1 && (isNaN || weightError(parts, row) > mostWeightError)) count++;
  }
  return count;
}

function checkOf(
  name: 'out' | 'lse',
  shares: Float64Array | null,
  unjudged: number,
  statement: (row: number) => string,
): LinkCheck {
  const rows = shares === null ? [] : wrongRows(shares);
  const label = name === 'out' ? 'O' : 'LSE';
  const worst = shares === null || shares.length === 0 ? null : worstRow(shares);
  return {
    name,
    label,
    parts: 'rows',
    claim: `${label} is the merge of its parts`,
    checked: (shares?.length ?? 0) - unjudged,
    wrong: rows.length,
    free: 0,
    worstShare: worst === null || shares === null ? null : shares[worst],
    statement: rows.length === 0 || worst === null ? null : statement(worst),
    isWorstCase: true,
    unjudged:
      shares === null
        ? `no merged ${label} was given`
        : unjudged === shares.length
          ? `no row of ${label} has a bound`
          : null,
    isRequired: name === 'out',
  };
}

/** Shares of bounds; null for what was not given. */
interface Shares {
  readonly out: Float64Array | null;
  readonly lse: Float64Array | null;
}

function explain(given: GivenMerge, out: StoredMerge | null, shares: Shares): FoundCause {
  const { parts, lse, shape } = given;
  const ofOut = shares.out === null ? [] : wrongRows(shares.out);
  if (ofOut.length > 0 && out !== null) {
    const place = placeOf(ofOut, shape);
    const [first, ...others] = explainingFaults(parts, out);
    return first === undefined
      ? { ...unexplainedCause([`wrong: ${describePlace(place)}`]), place }
      : foundCause({ ...first, place }, ['with it, every row of O would be right'], others);
  }
  const place = placeOf(wrongRows(shares.lse ?? new Float64Array(0)), shape);
  const exact = mergeParts(parts);
  const [first, ...others] = mergedLseFaults.filter((fault) => {
    const wrong = { ...exact, lse: fault.lse(exact.lse, parts) };
    return lse !== null && wrongRows(lseShares(parts, wrong, lse)).length === 0;
  });
  return first === undefined
    ? { ...unexplainedCause([`wrong: ${describePlace(place)}`]), place }
    : foundCause({ ...first, place }, ['O is right, and with it every LSE would be'], others);
}

/** Rows whose parts all have no key; nothing else tells whether those are (0, −∞). */
function emptyRows({ parts }: GivenMerge): number {
  const { splits, rows, lse } = parts;
  let empty = 0;
  for (let row = 0; row < rows; row++) {
    let isEmpty = true;
    for (let split = 0; split < splits; split++) isEmpty &&= lse[split * rows + row] === -Infinity;
    empty += isEmpty ? 1 : 0;
  }
  return empty;
}

/** Remarks on rows that are right or wrong by no bound of rounding. */
function notesOf(empty: number, unjudged: number): string[] {
  return [
    ...(empty === 0 ? [] : [`${empty} rows have no key in any part, and have to be (0, −∞)`]),
    ...(unjudged === 0
      ? []
      : [
          `${unjudged} rows are not judged: NaN in their parts, or LSEs beyond what fp32 can weigh`,
        ]),
  ];
}

/**
 * Judges a merge of partial results: O = Σ e^(l_s − m) O_s / Σ e^(l_s − m) and L = m + ln Σ e^(l_s − m), each element against the
 * error bound of a merge in fp32 with exponentials and logarithms of some ulps, and the rounding of the output.
 */
export function auditMerge(given: GivenMerge): LinkAudit {
  const { shape, parts, lse, factor = 1 } = given;
  const out = given.out && ({ ...given.out, rounding: 'nearest', factor } as const);
  const merged = mergeParts(parts);
  const shares: Shares = {
    out: out === null ? null : outShares(parts, merged, out),
    lse: lse === null ? null : lseShares(parts, merged, lse),
  };
  const unjudged = (one: Float64Array | null) =>
    one === null ? 0 : unjudgedRows(one, parts, merged);
  const checks = [
    checkOf('out', shares.out, unjudged(shares.out), (row) =>
      out === null ? '' : outStatement(row, out, merged, shape),
    ),
    checkOf(
      'lse',
      shares.lse,
      unjudged(shares.lse),
      (row) =>
        `the LSE at ${rowWords(row, shape)}: got ${formatNumber(lse?.values[row] ?? NaN)}, the merge of the parts is ${formatNumber(merged.lse[row])}`,
    ),
  ];
  const empty = emptyRows(given);
  const { batch, heads, queries, dim } = shape;
  return {
    contract: 'merge',
    description: [
      `${parts.splits} ${parts.splits === 1 ? 'part' : 'parts'}`,
      ...(batch === 1 ? [] : [`batch ${batch}`]),
      `${heads} ${heads === 1 ? 'head' : 'heads'}, ${queries} ${queries === 1 ? 'query' : 'queries'}, dim ${dim}`,
      ...(out === null ? [] : [`O ${out.format}`]),
      ...(factor === 1 ? [] : [`O times ${formatNumber(factor)}`]),
      ...(given.ofBase2 ?? []).map((whose) => `LSEs of ${whose} in base 2`),
    ].join(', '),
    settings: { parts: parts.splits, ...shape },
    checks,
    verdict: reachLinkVerdict(
      checks,
      () => explain(given, out, shares),
      notesOf(empty, Math.max(unjudged(shares.out), unjudged(shares.lse))),
    ),
    arithmetic:
      'weights, sums and quotients in fp32, exponentials within 2^-21, and one rounding of the output',
    falseAlarmRate: null,
  };
}
