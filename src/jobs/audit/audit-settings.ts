import type { KernelModel, KernelSettings } from '../../../kernels/index.js';
import { defaultRows } from '../../audit/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import {
  problemNote,
  type DeclaredFormats,
  type LinkSettings,
  type ProblemSettings,
  type RecurrentSettings,
  type TensorFile,
} from '../../io/tensors/index.js';
import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import { withNote, type JudgedReport } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import type { KernelSource } from './kernel-source.js';
import type { TensorPlaces } from './read-outputs.js';
import type { RecurrentPlaces } from './recurrent/read-results.js';

/** Number of rows to judge: `all`, a number, or null for the usual number for the problem. */
export interface RowsRequest {
  readonly count: number | 'all' | null;
  /** Draws the rows of a sample; default: at random. */
  readonly seed?: number | undefined;
}

/** Upper limit of seeds that are drawn at random, so that they are easy to type. */
const mostSeeds = 2 ** 31;

/** A request with a seed: its own, or one drawn at random. */
export function seededRows(request: RowsRequest): RowsRequest & { readonly seed: number } {
  return { ...request, seed: request.seed ?? Math.floor(Math.random() * mostSeeds) };
}

/** Number of rows that a request selects, and the seed that draws them; null for all. */
export function chosenRows(
  problem: Problem,
  request: RowsRequest | undefined,
): { readonly rows: number; readonly seed: number } | null {
  const { count, seed } = seededRows(request ?? { count: null });
  const rows = count ?? defaultRows(problem, problemShape(problem));
  return rows === null || rows === 'all' ? null : { rows, seed };
}

/** Settings of an audit, the same for every file that is judged by them. */
export interface AuditSettings extends TensorPlaces, RecurrentPlaces {
  /** The tool's version. */
  readonly version: string;
  readonly problem: ProblemSettings;
  /** What is said of linear attention beside `problem`, and where its initial state is. */
  readonly recurrence: Pick<RecurrentSettings, 'family' | 'stateLayout' | 'normalisation'>;
  readonly initialState?: string | undefined;
  /** The contract to judge by, as text; default: what the file's metadata says, else attention. */
  readonly contract?: string | undefined;
  /** Places of tensors, and settings, of a link of the decode chain. */
  readonly link: Pick<LinkSettings, 'tensors' | 'notes'>;
  /**
   * Given options, as `--lse`, that audits of softmax attention alone take, those that audits of linear attention alone take, those of
   * both and of no link of the decode chain, and those of links alone.
   */
  readonly softmaxOptions: readonly string[];
  readonly recurrentOptions: readonly string[];
  readonly attentionOptions: readonly string[];
  readonly linkOptions: readonly string[];
  readonly formats: DeclaredFormats;
  /** The kernel whose results are judged; null for those in files. */
  readonly source: KernelSource | null;
  /** The base of the LSEs that are read, `e` by default, or `2`. */
  readonly lseBase?: string | undefined;
  /** The number of keys of a block of which each split has as many, and the keys where splits begin and end, as text. */
  readonly splitBlock?: string | undefined;
  readonly splitBoundaries?: string | undefined;
  /** Declarations about the kernel; see `ArithmeticRequest`. */
  readonly kernel?: string | undefined;
  readonly as?: string | undefined;
  readonly premise?: readonly string[] | undefined;
  readonly gradientPremise?: readonly string[] | undefined;
  readonly strictPremises?: boolean | undefined;
  /**
   * Settings of the kernel model, of both passes.
   * @throws RequestError for those that do not parse
   */
  readonly modelSettings: () => KernelSettings;
  /** The available kernel models; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** The probability that the statistical tests fail a correct kernel. */
  readonly falseAlarmRate: number;
  /** The rows to judge; one seed serves all samples of a file. */
  readonly rows: RowsRequest & { readonly seed: number };
  /** Number of keys to judge dK and dV of; null, where that is not said, for all. */
  readonly keys: number | 'all' | null;
  /** Other outputs to judge beside the first, each `[<name>=]<file>[:<tensor>]`. */
  readonly compare?: readonly string[] | undefined;
  readonly techniques: boolean;
  readonly identify?: boolean | undefined;
  /** Whether to gather the data of the HTML report. */
  readonly plots: boolean;
  /** Whether every number is shown, which a sample whose keys stay in their file has not. */
  readonly full?: boolean | undefined;
  readonly threads: number;
}

/**
 * Refuses a tensor that whoever wrote it made shorter than Q, of more bits than 8: by a format of its own choice a kernel would
 * choose how coarse it is judged.
 */
function rejectShorter(name: string, format: FormatName, { q }: Pick<Problem, 'q'>): void {
  if (formats[format].precision >= formats[q.format].precision) return;
  throw new RequestError(
    `${name} is ${format}, which is shorter than ${q.format}, the format of Q, and makes bounds wider; write it in ${q.format}, or leave out --strict-premises`,
  );
}

/**
 * Applies --strict-premises, if it is given, to the outputs of a kernel.
 * @throws RequestError for an output or a gradient in a shorter format than Q's
 */
export function rejectShorterFormats(
  problem: Pick<Problem, 'q'>,
  given: Readonly<Record<string, Tensor | null | undefined>>,
  { strictPremises }: AuditSettings,
): void {
  if (strictPremises !== true) return;
  for (const [name, tensor] of Object.entries(given))
    if (tensor && name !== 'lse') rejectShorter(name, tensor.format, problem);
}

/** A report that says so if --strict-premises sets the file's notes of premises aside. */
export function withStrictNote(
  report: JudgedReport,
  file: TensorFile,
  { as, premise, kernel, strictPremises }: AuditSettings,
): JudgedReport {
  const isSaid = [as, premise, kernel].some((option) => option !== undefined);
  if (strictPremises !== true || isSaid || problemNote(file, 'premises') === undefined)
    return report;
  return withNote(
    report,
    "the file's metadata names premises, which --strict-premises leaves aside",
  );
}
