import type { Place } from '../../rows/index.js';
import type { GradientDeclaration } from '../premises/gradient-declaration.js';

/** The cause of the failure of gradients. */
export interface GradientDiagnosis {
  /** The name of the cause; `unexplained` where no known cause gives these gradients. */
  readonly id: string;
  /** Names of other causes that would have given the same gradients on this problem. */
  readonly equivalents: readonly string[];
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  /** The place where the cause shows; everywhere where it is unexplained. */
  readonly place: Place;
  /** Evidence for the cause, a clause each. */
  readonly evidence: readonly string[];
  /** The premise of a correct kernel that does the same as the cause; left out where none does. */
  readonly declares?: GradientDeclaration;
}
