/**
 * A kernel did something else than compute: it threw, ended, gave no answer or no tensor of the
 * problem's shape. The message says what, in a clause.
 */
export class KernelFault extends Error {
  override readonly name = 'KernelFault';
  /**
   * Whether it took as long as a kernel is given at most, as silence does: then no simpler problem is
   * looked for, since each that fails as well would take as long.
   */
  readonly isSlow: boolean;

  constructor(message: string, { isSlow = false }: { readonly isSlow?: boolean } = {}) {
    super(message);
    this.isSlow = isSlow;
  }
}
