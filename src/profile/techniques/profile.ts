import type { PolynomialDegree } from '../../../kernels/index.js';
import type { MufuArchitecture } from '../../hardware/index.js';
import type { InputRange } from '../cells.js';
import type { CornerReport } from '../corners.js';
import type { DomainReport } from '../error-report.js';
import type { SweepLedger, SweepProgress } from '../sweep.js';
import type { FunctionEvidence, ReferenceReport } from '../functions.js';
import type { TradeOffOptions } from '../trade-offs/trade-off-request.js';
import type { Plot } from './plots.js';

/** Options of a profile. The problems are those of trade-offs, which measure whole forwards. */
export interface ProfileOptions extends TradeOffOptions {
  /** Degrees of the polynomial; default all degrees of FlashAttention-4, or 3 for a split. */
  readonly degrees?: readonly PolynomialDegree[];
  /** The inputs to sweep; default all. */
  readonly range?: InputRange;
  /**
   * The architecture that the evidence is stated for; default sm_90. Only trade-offs depend on
   * it: they run the forward of that architecture, and their default is sm_100.
   */
  readonly architecture?: MufuArchitecture;
  /** Name of a tuning entry; default all. */
  readonly tuning?: string;
  /** Worker threads; default 1, this thread. No result depends on it. */
  readonly threads?: number;
  readonly progress?: SweepProgress;
  /** Store in which the results of a sweep in several sittings are kept and looked up; default none. */
  readonly ledger?: SweepLedger;
}

/** Members that all profiles of errors have. */
export interface FunctionErrorProfile {
  readonly title: string;
  /** The inputs swept; all where an end is missing. */
  readonly range: InputRange;
  readonly functions: readonly FunctionEvidence[];
  readonly reference: ReferenceReport;
  readonly domains: readonly DomainReport[];
  readonly corners: readonly CornerReport[];
  readonly notes: readonly string[];
  readonly plots: readonly Plot[];
}
