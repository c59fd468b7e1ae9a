import type { ElementTest, ErrorProfile, OutputDifference } from '../../../audit/index.js';
import type { FormatName } from '../../../formats/index.js';
import type { StatedVerdict } from '../../../words/index.js';
import { fromReported, toReported, type Reported } from '../report-number.js';
import { mainOutput, type ReportedOutput, type ReportedVectors } from './outputs.js';

/** The origin of an output; `path` is null when a live or an emulated kernel made it. */
interface VersionSource {
  readonly path: string | null;
  readonly tensor: string;
  /** SHA-256 of the elements. */
  readonly sha256: string;
  readonly format: FormatName;
}

/** One of several outputs of a problem, judged like the others. */
export interface ReportedVersion extends StatedVerdict {
  /** The output's name beside the others. */
  readonly name: string;
  readonly source: VersionSource;
  readonly pass: boolean;
  /** Its RMS and largest error, in the output's unit; and the largest in ulps. */
  readonly rms: Reported<number>;
  readonly max: Reported<number>;
  readonly ulps: Reported<number>;
  /** The largest share of its bound that an element uses. */
  readonly boundUsed: Reported<number>;
}

/** The difference of an output from the first. */
export interface ReportedDifference extends Reported<OutputDifference> {
  readonly name: string;
  /** The probability of the paired test, times the number of comparisons. */
  readonly adjustedPValue: number;
  /** The name of the output that is significantly closer to the exact one; null where neither is. */
  readonly closer: string | null;
}

/** Outputs of one problem side by side. */
export interface ReportedComparison {
  /** The arithmetic whose bounds they are all judged by, in words. */
  readonly arithmetic: string;
  /** Limit below which an adjusted probability is significant. */
  readonly significance: number;
  /** The judged output first. */
  readonly outputs: readonly ReportedVersion[];
  /** Each of the others beside the first. */
  readonly differences: readonly ReportedDifference[];
}

/** Members that are read of the report of an output. */
interface VersionReport {
  readonly arithmetic: string;
  readonly verdict: StatedVerdict & { readonly pass: boolean };
  readonly inputs: { readonly outputs: readonly VersionSource[] };
  readonly outputs: readonly [ReportedVectors, ...ReportedOutput[]];
}

/** An output in a comparison: its report, and its difference from the first. */
export interface ComparedVersion {
  readonly name: string;
  readonly report: VersionReport;
  /** Null for the first. */
  readonly difference: OutputDifference | null;
}

/** Limit below which the probability of a difference in closeness is significant. */
const significance = 0.01;

function reportedVersion({ name, report }: ComparedVersion): ReportedVersion {
  const main = mainOutput(report);
  const { absolute, ulps } = fromReported<ErrorProfile>(main.error);
  const { worstRatio } = fromReported<ElementTest>(main.elements);
  const { path, tensor, sha256, format } = report.inputs.outputs[0];
  return {
    name,
    source: { path, tensor, sha256, format },
    pass: report.verdict.pass,
    status: report.verdict.status,
    sentence: report.verdict.sentence,
    ...toReported({ rms: absolute.rms, max: absolute.max, ulps: ulps.max, boundUsed: worstRatio }),
  };
}

/** Outputs of one problem side by side; the others are compared with the first. */
export function reportedComparison(compared: readonly ComparedVersion[]): ReportedComparison {
  const [first, ...others] = compared;
  return {
    arithmetic: first.report.arithmetic,
    significance,
    outputs: compared.map(reportedVersion),
    differences: others.flatMap(({ name, difference }) => {
      if (difference === null) return [];
      const { pValue, rms } = difference.closeness;
      const adjustedPValue = Math.min(1, pValue * others.length);
      const { firstCloser, positive } = difference.closeness;
      // The test compares ranks: the output that is closer in most rows need not have the smaller root mean square.
      const isClear = adjustedPValue < significance && firstCloser > positive === rms[0] < rms[1];
      const closer = isClear ? (rms[0] < rms[1] ? first.name : name) : null;
      return [{ name, ...toReported(difference), adjustedPValue, closer }];
    }),
  };
}
