import { checkSelection, headsOf, type SelectionProblem } from '../../../../oracles/index.js';
import { RequestError } from '../../../request-error.js';
import { formatNumber } from '../../../words/index.js';
import { foundCause, unexplainedCause, type FoundCause } from '../../conduct/causes.js';
import { describePlace, drawsOf, drawSome, placeOfRows, type Place } from '../../rows/index.js';
import { reachLinkVerdict, type LinkAudit, type LinkCheck } from '../link-audit.js';
import {
  rowFaults,
  rowJudge,
  visibleOf,
  type JudgedRow,
  type RowFault,
  type SelectionPromises,
  type SelectionResults,
  type SelectionRow,
  type Witness,
} from './judge-rows.js';
import type { SelectionArithmetic } from './score-intervals.js';
import { selectionFaults, type FaultySelection } from './selection-faults.js';

/** What is said of a selection's kernel and of its audit. */
export interface SelectionOptions {
  readonly arithmetic: SelectionArithmetic;
  readonly promises: SelectionPromises;
  /** Draws the rows to judge where all of them would take more than about a minute. */
  readonly seed: number;
}

/** A selection with what a kernel selected. */
export interface GivenSelection {
  readonly problem: SelectionProblem;
  readonly results: SelectionResults;
}

/** Rows of each kind, wrong and right, that a cause has to explain. */
const explainedRows = 24;
/** Multiply-adds beyond which rows are drawn: about a minute of work. */
const mostMultiplyAdds = 3e10;

/** All rows of a selection, or those of a sample in their order. */
function rowsOf({ shape }: SelectionProblem, most: number, seed: number): SelectionRow[] {
  const { batch, queries, heads } = shape;
  const at = (row: number): SelectionRow => ({
    entry: Math.floor(row / (queries * heads)),
    query: Math.floor(row / heads) % queries,
    head: row % heads,
  });
  const all = batch * queries * heads;
  const rows = Array.from({ length: all }, (_, row) => row);
  const chosen = all <= most ? rows : drawSome(rows, most, drawsOf(seed, 0)).sort((a, b) => a - b);
  return chosen.map(at);
}

/** The most rows that are judged. */
function mostRows(problem: SelectionProblem): number {
  const { shape, law } = problem;
  const { dim, queryHeads } = headsOf(problem);
  const ofRow = shape.candidates * (law === 'given' ? 8 : (dim * queryHeads) / shape.heads);
  return Math.max(16, Math.floor(mostMultiplyAdds / Math.max(1, ofRow)));
}

/** The place of some rows. */
function placeOf(rows: readonly SelectionRow[], { shape }: SelectionProblem): Place {
  const { batch, queries, heads, keys } = shape;
  const sizes = { batch, heads, kvHeads: heads, groupSize: 1, queries, keys, qkDim: 1, vDim: 1 };
  return placeOfRows(
    rows.map(({ entry, query, head }) => (entry * heads + head) * queries + query),
    { shape: sizes },
  );
}

function rowWords({ entry, query, head }: SelectionRow, { shape }: SelectionProblem): string {
  const parts = [
    ...(shape.batch > 1 ? [`sequence ${entry}`] : []),
    ...(shape.heads > 1 ? [`head ${head}`] : []),
    `query ${query}`,
  ];
  return parts.join(', ');
}

/** Evidence for a fault in words, by its worst witness. */
function statementOf(fault: RowFault, witness: Witness, problem: SelectionProblem): string {
  const where = rowWords(witness, problem);
  const { from, to } = visibleOf(problem, witness);
  const { listed, left, listedScore, leftScore } = witness;
  const things = problem.blockSize > 1 ? 'blocks' : 'keys';
  switch (fault) {
    case 'range':
      return `${where} lists ${listed}, and may list ${things} ${from} to ${to - 1}, or -1 for none`;
    case 'duplicates':
      return `${where} lists ${listed} more than once`;
    case 'count':
      return `${where} lists another number than the ${Math.min(problem.count, Math.max(0, to - from))} ${things} that it has to`;
    case 'largest':
      return `${where} lists ${listed} with the score ${formatNumber(listedScore)} and leaves out ${left} with ${formatNumber(leftScore)}`;
    case 'order':
      return left < 0
        ? `${where} lists ${listed} behind an unused place`
        : `${where} lists ${left} with the score ${formatNumber(leftScore)} before ${listed} with ${formatNumber(listedScore)}`;
    case 'ties':
      return `${where} lists ${listed} and leaves out ${left}, whose equal score comes first by its index`;
    case 'values':
      return `${where} gives a score of ${listed} that is not its own, ${formatNumber(listedScore)}`;
  }
}

/** What is counted, and what is true where nothing is wrong, by fault. */
function wordsOf(
  problem: SelectionProblem,
): Readonly<Record<RowFault, { readonly label: string; readonly claim: string }>> {
  const things = problem.blockSize > 1 ? 'blocks' : 'keys';
  return {
    range: { label: 'Range', claim: `every index is of ${things} that its row sees` },
    duplicates: { label: 'Duplicates', claim: 'none is listed twice' },
    count: { label: 'Count', claim: 'no row lists too few or too many' },
    largest: { label: 'Largest', claim: 'every row lists its largest scores' },
    order: { label: 'Order', claim: 'lists are in descending order' },
    ties: { label: 'Ties', claim: 'ties are broken as promised' },
    values: { label: 'Scores', claim: 'the scores beside the lists are those of their indices' },
  };
}

/** The judged rows of a selection, summed. */
interface Tally {
  readonly rows: readonly SelectionRow[];
  readonly judged: readonly JudgedRow[];
}

/** The reason why nothing of a check was judged; null where something was. */
function unjudgedReason(
  fault: RowFault,
  { law }: SelectionProblem,
  defined: readonly JudgedRow[],
): string | null {
  if (fault === 'ties' && law !== 'given')
    return 'only scores that are given are equal for certain';
  if (fault !== 'largest') return null;
  if (defined.length === 0) return 'every row has a score that is NaN or has no bound';
  const choosing = defined.filter((row) => row.listed > 0 && row.isDecided !== null);
  return choosing.length > 0 && !choosing.some(({ isDecided }) => isDecided)
    ? 'no score decides: any list of as many would be right'
    : null;
}

function checksOf(
  { problem, results }: GivenSelection,
  { promises }: SelectionOptions,
  { judged, rows }: Tally,
): LinkCheck[] {
  const words = wordsOf(problem);
  const defined = judged.filter(({ isUndefined }) => !isUndefined);
  const listed = defined.reduce((sum, row) => sum + row.listed, 0);
  const isAsked: Readonly<Record<RowFault, boolean>> = {
    range: true,
    duplicates: true,
    count: true,
    largest: true,
    order: promises.isSorted,
    ties: promises.ties !== 'any',
    values: results.scores !== undefined,
  };
  return rowFaults
    .filter((fault) => isAsked[fault])
    .map((fault): LinkCheck => {
      const wrong = judged.reduce((sum, row) => sum + (row.wrong[fault] ?? 0), 0);
      const witness = judged.flatMap((row) => row.witness[fault] ?? []);
      const most = witness.reduce<Witness | null>(
        (a, b) => (a === null || gapOf(b) > gapOf(a) ? b : a),
        null,
      );
      const isOfRows = fault === 'count';
      const checked = isOfRows
        ? rows.length
        : fault === 'range' || fault === 'duplicates'
          ? listed + wrong
          : listed;
      return {
        name: fault,
        label: words[fault].label,
        parts: isOfRows ? 'places' : 'indices',
        claim: words[fault].claim,
        checked: isOfRows ? Math.max(checked, wrong) : checked,
        wrong,
        free: fault === 'largest' ? defined.reduce((sum, row) => sum + row.free, 0) : 0,
        worstShare: null,
        statement: most === null ? null : statementOf(fault, most, problem),
        isWorstCase: true,
        unjudged: unjudgedReason(fault, problem, defined),
        isRequired: fault === 'largest',
      };
    });
}

/** How much larger a left-out score is than the listed one. */
function gapOf({ listedScore, leftScore }: Witness): number {
  const gap = leftScore - listedScore;
  return Number.isNaN(gap) ? -Infinity : gap;
}

const isWrong = ({ wrong }: JudgedRow) => Object.keys(wrong).length > 0;

/** A cause by its own evidence: what no score explains. */
function knownCause(tally: Tally, { problem }: GivenSelection): FoundCause | null {
  const found = (id: string, sentence: string, fault: RowFault) =>
    foundCause(
      {
        id,
        sentence,
        place: placeOf(
          tally.rows.filter((_, i) => tally.judged[i].wrong[fault] !== undefined),
          problem,
        ),
      },
      ['the other checks of these rows pass'],
    );
  const onlyFault = (fault: RowFault) =>
    tally.judged.every(({ wrong }) => Object.keys(wrong).every((one) => one === fault));
  if (onlyFault('duplicates'))
    return found('listed-twice', 'candidates are listed more than once', 'duplicates');
  if (onlyFault('order')) return found('unsorted', 'lists are not in descending order', 'order');
  if (onlyFault('ties'))
    return found('ties-at-will', 'ties are broken otherwise than promised', 'ties');
  if (onlyFault('values'))
    return found(
      'scores-of-others',
      'the scores beside the lists are not those of their indices',
      'values',
    );
  return null;
}

/** The cause of a failed selection: a fault with which all wrong rows, and right ones beside them, would be right. */
function explain(given: GivenSelection, options: SelectionOptions, tally: Tally): FoundCause {
  const known = knownCause(tally, given);
  if (known !== null) return known;
  const pick = (some: (row: JudgedRow) => boolean) =>
    tally.rows.filter((_, i) => some(tally.judged[i]));
  const wrong = pick(isWrong);
  const step = Math.ceil(wrong.length / explainedRows);
  const tried = [
    ...wrong.filter((_, i) => i % step === 0),
    ...pick((row) => !isWrong(row)).slice(0, explainedRows),
  ];
  const self: FaultySelection = { ...given, arithmetic: options.arithmetic };
  const accepted = selectionFaults.filter(({ apply }) => {
    const faulty = apply(self);
    if (faulty === null) return false;
    const judge = rowJudge(faulty.problem, faulty.results, faulty.arithmetic, options.promises);
    return tried.every((row) => {
      const judged = judge(row);
      return !isWrong(judged) && !judged.isUndefined;
    });
  });
  const place = placeOf(wrong, given.problem);
  const [first, ...others] = accepted;
  if (first === undefined)
    return { ...unexplainedCause([`wrong: ${describePlace(place)}`]), place };
  return foundCause(
    { id: first.id, sentence: first.sentence, place },
    [
      `with it, ${tried.length} rows, ${wrong.length === 0 ? 0 : Math.ceil(wrong.length / step)} of them wrong, would be right`,
    ],
    others,
  );
}

/** "rows see 985 to 1000", where some do not see all, and what every row lists. */
function limitWords({ first, end, forced, shape }: SelectionProblem): string[] {
  const seen = Array.from(end, (one, row) => Math.max(0, one - Math.max(0, first[row])));
  const least = seen.reduce((a, b) => Math.min(a, b), shape.candidates);
  const most = seen.reduce((a, b) => Math.max(a, b), 0);
  const always = [...(forced.first ? ['first'] : []), ...(forced.last ? ['last'] : [])];
  return [
    ...(least === shape.candidates
      ? []
      : [`rows see ${least === most ? least : `${least} to ${most}`}`]),
    ...(always.length === 0 ? [] : [`rows list their ${always.join(' and ')} whatever it scores`]),
  ];
}

function describe({ problem }: GivenSelection): string {
  const { shape, law, count, blockSize, reduction } = problem;
  const { batch, queries, heads, candidates } = shape;
  const { queryHeads, keyHeads, dim } = headsOf(problem);
  return [
    `the ${count} largest of ${candidates} ${blockSize > 1 ? `blocks of ${blockSize} keys` : 'keys'}`,
    ...limitWords(problem),
    `scores ${law}`,
    ...(batch === 1 ? [] : [`batch ${batch}`]),
    `${queries} ${queries === 1 ? 'query' : 'queries'}`,
    `${heads} ${heads === 1 ? 'list' : 'lists'} a query`,
    ...(law === 'given' ? [] : [`${queryHeads} heads (${keyHeads} of K), dim ${dim}`]),
    ...(law === 'given' || queryHeads === heads || law === 'indexer'
      ? []
      : [`${reduction} over heads`]),
  ].join(', ');
}

function arithmeticWords(
  { law }: SelectionProblem,
  { accumulator, scores, means }: SelectionArithmetic,
): string {
  if (law === 'given') return 'the given scores as they are, compared exactly';
  const sums =
    accumulator === 'fp32'
      ? 'fp32 sums in any order'
      : 'sums with 13 fraction bits, as of fp8 on Hopper';
  return [
    sums,
    ...(law === 'block-mean' ? [`means of blocks in ${means}`] : []),
    `scores rounded to ${scores} before they are compared`,
  ].join(', ');
}

/**
 * Judges a selection: a list is right if scores within the arithmetic's roundings of the exact ones have it as their largest.
 * @throws RequestError where tensors do not fit together
 */
export function auditSelection(given: GivenSelection, options: SelectionOptions): LinkAudit {
  const { problem, results } = given;
  checkSelection(problem);
  const { batch, queries, heads, listed } = problem.shape;
  if (results.indices.length !== batch * queries * heads * listed)
    throw new RequestError('there are not as many indices as lists have places; make them fit');
  const rows = rowsOf(problem, mostRows(problem), options.seed);
  const judge = rowJudge(problem, results, options.arithmetic, options.promises);
  const judged = rows.map(judge);
  const tally = { rows, judged };
  const checks = checksOf(given, options, tally);
  const all = batch * queries * heads;
  const nan = judged.filter(({ isUndefined }) => isUndefined).length;
  const notes = [
    ...(rows.length < all ? [`${rows.length} sampled rows of ${all} are judged`] : []),
    ...(nan > 0
      ? [`${nan} rows have a score that is NaN or has no bound, and are not judged`]
      : []),
  ];
  return {
    contract: 'selection',
    description: describe(given),
    settings: {
      law: problem.law,
      count: problem.count,
      ...problem.shape,
      blockSize: problem.blockSize,
      reduction: problem.reduction,
      accumulator: options.arithmetic.accumulator,
      scores: options.arithmetic.scores,
      sorted: options.promises.isSorted,
      ties: options.promises.ties,
    },
    checks,
    verdict: reachLinkVerdict(checks, () => explain(given, options, tally), notes),
    arithmetic: arithmeticWords(problem, options.arithmetic),
    falseAlarmRate: null,
  };
}
