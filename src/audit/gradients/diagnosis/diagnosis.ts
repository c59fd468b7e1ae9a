import type { FoundCause } from '../../conduct/causes.js';
import type { GradientDeclaration } from '../premises/gradient-declaration.js';

/** The cause of the failure of gradients. */
export interface GradientDiagnosis extends FoundCause {
  /** The premise of a correct kernel that does the same as the cause; left out where none does. */
  readonly declares?: GradientDeclaration;
}
