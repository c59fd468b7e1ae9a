import type { Tensor } from '../../problem/index.js';
import type { JudgedGradientName } from './gradient-quantities.js';

/** What a kernel's backward pass gave, and what it was given; null, or left out, for what there is not. */
export interface GradientTensors extends Readonly<
  Partial<Record<JudgedGradientName, Tensor | null>>
> {
  /** The gradient of the output, which was given to the kernel: [batch, heads, seqlen_q, v dim]. */
  readonly dout: Tensor;
  /** The kernel's own output and LSE (natural logarithms), which its backward pass read. */
  readonly out?: Tensor | null;
  readonly lse?: Tensor | null;
}
