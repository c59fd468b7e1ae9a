import type { KernelSettings } from '../../../kernels/index.js';
import type { ReadNames, TensorFile } from '../../io/tensors/index.js';
import type { RecurrentDeclaration } from '../../audit/index.js';
import type {
  Problem,
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentResults,
} from '../../problem/index.js';
import type { MachineClauses, NoOutput, TensorSource } from '../../report/json/index.js';
import type { ReadGradients } from './read-gradients.js';
import type { JudgedOutputs, TensorReading } from './read-outputs.js';

/** A problem's file while it is being judged. */
export interface OpenProblem {
  readonly file: TensorFile;
  readonly problem: Problem;
  readonly reading: TensorReading;
  /** The names of the tensors in the file that make up the problem. */
  readonly read: ReadNames;
}

/** Results to judge: an output, gradients, or both, of a compiled kernel with the machine's findings. */
export type ObtainedResults = { readonly machine?: MachineClauses } & (
  | { readonly judged: JudgedOutputs; readonly gradients: ReadGradients | null }
  | { readonly judged: null; readonly gradients: ReadGradients }
);

/** A kernel that is ready for one problem. */
export interface ReadyKernel {
  readonly hasGradients: boolean;
  /** The reason that no gradients are judged where the problem has dO, in a clause; null for none. */
  readonly reason: string | null;
  /**
   * Runs the kernel, and gives its results or the reason that it gave none.
   * @param settings of a model's forward pass
   * @throws RequestError for a kernel that cannot be run, or not on this problem
   */
  readonly run: (
    settings: () => KernelSettings,
  ) => Promise<ObtainedResults | { readonly failure: NoOutput }>;
}

/** A kernel that can be run on problems. */
export interface OpenedKernel {
  /** The names of the tensors of the problem's file that it takes beside Q, K and V. */
  readonly takes: Iterable<string>;
  /** Whether it gives gradients, whatever the problem. */
  readonly givesGradients: boolean;
  /** @throws RequestError for a request that it cannot meet */
  readonly prepare: (open: OpenProblem) => ReadyKernel;
}

/** A problem of linear attention for a kernel to compute. */
export interface OpenRecurrence {
  readonly file: TensorFile;
  readonly problem: RecurrentProblem;
  /** What gradients begin with; undefined where none are to be judged. */
  readonly gradientInputs: RecurrentGradientInputs | undefined;
}

/** Results of a kernel of linear attention to judge, of a compiled one with the machine's findings. */
export interface ObtainedRecurrence {
  readonly results: RecurrentResults;
  /** The sources of the results, by quantity. */
  readonly sources: Readonly<Record<string, TensorSource>>;
  /** What the kernel itself says of its arithmetic; null for nothing. */
  readonly declared: RecurrentDeclaration | null;
  /** Names of the other tensors that it wrote, which nothing reads; default none. */
  readonly unasked?: readonly string[];
  readonly machine?: MachineClauses;
}

/** A kernel of linear attention whose results are judged, in place of those in files. */
export interface RecurrentSource {
  /** The command that makes the same results. */
  readonly command: (problemPath: string) => string;
  /** Names of the tensors of the problem's file that it takes beside those of the recurrence. */
  readonly takes: () => Promise<Iterable<string>>;
  /**
   * Runs the kernel, and gives its results or the reason that it gave none.
   * @throws RequestError for a kernel that cannot be run, or not on this problem
   */
  readonly run: (
    open: OpenRecurrence,
  ) => Promise<ObtainedRecurrence | { readonly failure: NoOutput }>;
}

/** A kernel whose results are judged, in place of those in files. */
export interface KernelSource {
  /** Its name beside other outputs. */
  readonly name: string;
  /** Whether it is given the parts of the problem's file that nothing uses, too. */
  readonly keepsPosed: boolean;
  /** The command that makes the same results. */
  readonly command: (problemPath: string, withGradients: boolean) => string;
  /** @throws RequestError for a kernel that cannot be read, or gives nothing to judge */
  readonly open: () => Promise<OpenedKernel>;
  /** The same for problems of linear attention. */
  readonly recurrence: RecurrentSource;
}
