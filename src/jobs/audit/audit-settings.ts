import type { KernelModel, KernelSettings } from '../../../kernels/index.js';
import type { DeclaredFormats, ProblemSettings } from '../../io/tensors/index.js';
import type { RowsRequest } from './chosen-rows.js';
import type { KernelSource } from './kernel-source.js';
import type { TensorPlaces } from './read-outputs.js';

/** Settings of an audit, the same for every file that is judged by them. */
export interface AuditSettings extends TensorPlaces {
  /** The tool's version. */
  readonly version: string;
  readonly problem: ProblemSettings;
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
