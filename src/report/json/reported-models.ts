/** The comparison of a gradient with a model's, bit for bit: numbers of elements. */
export interface GradientBits {
  readonly name: string;
  readonly label: string;
  readonly elements: number;
  /** Number of elements with the model's bits. */
  readonly equal: number;
  /** Number of elements that another order of the model's additions gives. */
  readonly someOrder: number;
  /** Number of elements for which that was not decided, or not tried since too many differ. */
  readonly undecided: number;
  /** Number of elements that the model does not give. */
  readonly noOrder: number;
  /** Likeness of the other elements; null where the identification of the model was not requested. */
  readonly likeness: {
    /** Number of elements that are not correctly rounded in one of both, and of those of them that are equal. */
    readonly misrounded: number;
    readonly equalMisrounded: number;
    readonly largestDifference: number;
  } | null;
}

/** The comparison of a report's gradients with a kernel model's. */
export interface ModelMatch {
  readonly model: string;
  /** The chosen settings of the model, as text by key. */
  readonly settings: Readonly<Record<string, string>>;
  /** The O and LSE that its backward pass read: the given ones, or its own forward's; null where it was not run. */
  readonly forward: 'given' | 'own' | null;
  /** The reason why there is no comparison; null where there is one. */
  readonly reason: string | null;
  readonly gradients: readonly GradientBits[];
}

/** Sums over all gradients of a comparison. */
export function sumBits({ gradients }: ModelMatch): Omit<GradientBits, 'name' | 'label'> {
  const sum = (of: (bits: GradientBits) => number) => gradients.reduce((n, one) => n + of(one), 0);
  const isLike = gradients.every(({ likeness }) => likeness !== null);
  return {
    elements: sum(({ elements }) => elements),
    equal: sum(({ equal }) => equal),
    someOrder: sum(({ someOrder }) => someOrder),
    undecided: sum(({ undecided }) => undecided),
    noOrder: sum(({ noOrder }) => noOrder),
    likeness: isLike
      ? {
          misrounded: sum(({ likeness }) => likeness?.misrounded ?? 0),
          equalMisrounded: sum(({ likeness }) => likeness?.equalMisrounded ?? 0),
          largestDifference: Math.max(
            0,
            ...gradients.map(({ likeness }) => likeness?.largestDifference ?? 0),
          ),
        }
      : null,
  };
}
