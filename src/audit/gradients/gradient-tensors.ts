import type { Tensor } from '../../problem/index.js';
import type { JudgedGradientName } from './gradient-quantities.js';

/** Tensors of a kernel's backward pass, given and received; null, or left out, for those that there are not. */
export interface GradientTensors extends Readonly<
  Partial<Record<JudgedGradientName, Tensor | null>>
> {
  /** The gradient of the output, an input of the kernel: [batch, heads, seqlen_q, v dim]. */
  readonly dout: Tensor;
  /** The kernel's own output and LSE (natural logarithms), which its backward pass read. */
  readonly out?: Tensor | null;
  readonly lse?: Tensor | null;
}
