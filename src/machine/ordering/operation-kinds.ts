/** What follows from an operation's kind for its order with others. */
interface OperationTraits {
  /** Whether a memory model may ask for tcgen05 fences between it and operations of other warps. */
  readonly takesTensorFences: boolean;
  /** Whether tcgen05.commit tracks it. */
  readonly isCommitted: boolean;
  /** Whether it may be under way at the end of its CTA, of which it then needs nothing more. */
  readonly mayOutliveCta: boolean;
}

const traits = {
  mma: { takesTensorFences: true, isCommitted: true, mayOutliveCta: false },
  copy: { takesTensorFences: true, isCommitted: true, mayOutliveCta: false },
  commit: { takesTensorFences: false, isCommitted: false, mayOutliveCta: false },
  'tensor-load': { takesTensorFences: true, isCommitted: false, mayOutliveCta: false },
  'tensor-store': { takesTensorFences: true, isCommitted: false, mayOutliveCta: false },
  'bulk-load': { takesTensorFences: false, isCommitted: false, mayOutliveCta: false },
  'bulk-store': { takesTensorFences: false, isCommitted: false, mayOutliveCta: true },
} as const satisfies Readonly<Record<string, OperationTraits>>;

/** The kinds of operations that complete by themselves. */
export type OperationKind = keyof typeof traits;

/** By kind, in the order in which adversarial schedules take them. */
export const operationKinds: Readonly<Record<OperationKind, OperationTraits>> = traits;
