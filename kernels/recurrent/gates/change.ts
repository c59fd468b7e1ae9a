/** What a fault changes of how a kernel makes gates and write strengths. */
export interface GateChange {
  /** The rate of a head, of its A_log; default: its exponential, which rounds. */
  readonly rate?: (logarithm: number) => number;
  /** The sign of gates; default −1. */
  readonly sign?: number;
  /** The number from which the softplus is its argument; −∞: there is none. */
  readonly threshold?: number;
  /** Whether dt_bias is added behind the softplus. */
  readonly addsBiasBehind?: boolean;
  /** β of its logit; default: its sigmoid, which rounds. */
  readonly strength?: (logit: number) => number;
}
