import type {
  Audit,
  Baselines,
  Finding,
  KeyTileMaps,
  RowSample,
  Verdict,
  SequenceUsage,
} from '../../audit/index.js';
import type { TechniqueTable } from '../../attribution/index.js';
import type { FormatName } from '../../formats/index.js';
import type { ReportedProblem, ReportWarning, UnusedNames } from './reported/problem.js';
import type { ReportedSample } from './reported/sample.js';
import type { Reported } from './report-number.js';
import type { ReportedComparison } from './reported/comparison.js';
import type { ReportedGradients } from './reported/gradients.js';
import type { ReportedSplits } from './reported/splits.js';
import type { ReportedOutput, ReportedVectors } from './reported/outputs.js';

/** A tensor that was judged, and the file it came from. */
export interface TensorSource {
  readonly path: string;
  readonly tensor: string;
  /** SHA-256 of the elements, in row-major order and little-endian; lower-case hexadecimal. */
  readonly sha256: string;
  readonly format: FormatName;
  /** The wider format of the tensor in its file; absent where it has its own format there. */
  readonly storedAs?: FormatName;
}

/** A tensor whose numbers were widened before they were stored. */
export interface WidenedTensor {
  readonly name: string;
  readonly format: FormatName;
  readonly storedAs: FormatName;
}

/** The origin of an audit's inputs, its program and its time. */
export interface Provenance {
  /** The tool's version. */
  readonly version: string;
  /** The file that holds Q, K and V, and the SHA-256 of its bytes in lower-case hexadecimal. */
  readonly problem: { readonly path: string; readonly sha256: string };
  /**
   * The judged tensors, by the name of the quantity, in the order of their table; null, or left out, for
   * tensors that were not given. Empty when the kernel's process failed.
   */
  readonly outputs: Readonly<Record<string, TensorSource | null>>;
  /** The command of the live or emulated kernel, or null when the output was read from a user's file. */
  readonly command: string | null;
  /** Names in the problem's file that nothing used; null, or left out, when there are none. */
  readonly unused?: UnusedNames | null;
  /** Tensors that are judged in a narrower format than they are stored in; left out when there are none. */
  readonly widened?: readonly WidenedTensor[];
  /** The rows that are judged; null, or left out, for all. */
  readonly sample?: RowSample | null;
  /** Wall-clock time of the audit. */
  readonly seconds: number;
  /** Default: now. */
  readonly created?: Date;
}

/** A tensor that was judged; `path` is null when a live kernel wrote it, to a temporary file. */
export interface ReportedSource extends Omit<TensorSource, 'path' | 'storedAs'> {
  /** Name of the quantity. */
  readonly name: string;
  readonly path: string | null;
}

/** The part that all reports share. */
export interface ReportHead {
  readonly kind: 'audit';
  readonly schemaVersion: 2;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly seconds: number;
  readonly inputs: {
    readonly problem: { readonly path: string; readonly sha256: string };
    readonly outputs: readonly ReportedSource[];
    readonly command: string | null;
  };
  readonly problem: ReportedProblem;
  /** Null where all rows were judged. */
  readonly sample: ReportedSample | null;
  readonly verdict: Omit<Verdict, 'findings'> & { readonly findings: readonly ReportedFinding[] };
  readonly warnings: readonly ReportWarning[];
  /** Left out where no gradients were judged. */
  readonly gradients?: ReportedGradients;
}

/** A reason to fail: from the audit, from the machine that ran the kernel, or because its process gave nothing to judge. */
export interface ReportedFinding extends Omit<Finding, 'quantity' | 'test'> {
  /** Null where there is nothing to judge. */
  readonly quantity: string | null;
  readonly test:
    Finding['test'] | ('execution' | 'machine' | 'split-part' | 'split-merge' | 'link');
}

/** The report of an output that was judged: the audit, number for number. */
export interface JudgedReport extends ReportHead {
  /** The judged outputs, the kernel's main output first. */
  readonly outputs: readonly [ReportedVectors, ...ReportedOutput[]];
  /** The output, sequence by sequence; left out without packed sequences. */
  readonly sequences?: readonly Reported<SequenceUsage>[];
  /** Left out where no tile of keys is beyond what rounding explains. */
  readonly keyTiles?: Reported<KeyTileMaps>;
  readonly baselines: Reported<Baselines>;
  readonly oracle: Reported<Audit['oracle']>;
  readonly falseAlarmRate: number;
  /** The arithmetic that the bounds hold for, in words. */
  readonly arithmetic: string;
  /** Null when it was not requested. */
  readonly techniques: Reported<TechniqueTable> | null;
  /** Other outputs of the problem beside the judged one; null when they were not requested. */
  readonly comparison: ReportedComparison | null;
  /** The parts of a split problem; null where none were given. */
  readonly splits: ReportedSplits | null;
}

/**
 * The report of a live kernel whose process failed, or declined the problem, before there was an output to judge; or of
 * gradients without the output.
 */
export interface ReportWithoutOutput extends ReportHead {
  readonly outputs: null;
  readonly sequences?: never;
  readonly keyTiles?: never;
  readonly baselines: null;
  readonly oracle: null;
  readonly falseAlarmRate: null;
  readonly arithmetic: null;
  readonly techniques: null;
  readonly comparison: null;
  readonly splits: null;
}

/**
 * An audit's report: a plain JSON value that report.schema.json describes. Numbers that may be NaN
 * or infinite are `ReportNumber`s.
 */
export type AuditReport = JudgedReport | ReportWithoutOutput;
