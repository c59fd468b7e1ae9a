import type {
  DivisionQuality,
  IntegerRounding,
  OperandGroups,
  PremiseDeclaration,
  QuantisedOperands,
  QuantisedScalePlace,
  Smoothing,
  ValueFormat,
} from '../promises.js';

/** How a kernel itself quantises Q and K. */
export interface OperandQuantisation {
  readonly elements: QuantisedOperands;
  readonly groups: OperandGroups;
  /** Rows of a block of Q and of K, where groups are blocks. */
  readonly blocks: { readonly q: number; readonly k: number };
  readonly smoothing: Smoothing;
  readonly rounding: IntegerRounding;
  readonly division: DivisionQuality;
  readonly scale: QuantisedScalePlace;
}

/** How a kernel itself changes Q, K and V before it multiplies them. */
export interface Quantisation {
  /** Null where Q and K enter as they are. */
  readonly operands: OperandQuantisation | null;
  /** The format of V; null where it enters as it is. */
  readonly values: ValueFormat | null;
}

/** Rows of SageAttention's blocks. */
const usualBlocks = { q: 128, k: 64 };

/** The quantisation that a kernel declares, completed by the defaults; null where it declares none. */
export function quantisationOf(declared: PremiseDeclaration): Quantisation | null {
  const { qk, values = null } = declared;
  if (qk === undefined && values === null) return null;
  return {
    values,
    operands:
      qk === undefined
        ? null
        : {
            elements: qk,
            groups: declared.qkGroups ?? 'blocks',
            blocks: {
              q: declared.qBlock ?? usualBlocks.q,
              k: declared.kBlock ?? usualBlocks.k,
            },
            smoothing: declared.smoothing ?? 'none',
            rounding: declared.qkRounding ?? 'half-away',
            division: declared.qkDivision ?? 'full',
            scale: declared.qkScale ?? 'folded',
          },
  };
}

/** "Q and K in int8, a factor for 128 rows of Q and 64 of K, of K less its mean over the keys, and V in e4m3". */
export function describeQuantisation({ operands, values }: Quantisation): string {
  const ofValues = values === null ? [] : [`V in ${values}`];
  if (operands === null) return ofValues.join('');
  const { elements, groups, blocks, smoothing } = operands;
  const factors =
    elements === 'nvfp4'
      ? ''
      : groups === 'threads'
        ? ', a factor for each thread of a warp'
        : blocks.q === 1 && blocks.k === 1
          ? ', a factor for each token'
          : `, a factor for ${blocks.q} rows of Q and ${blocks.k} of K`;
  const mean = smoothing === 'keys' ? ', K less its mean over the keys' : '';
  return [`Q and K in ${elements}${factors}${mean}`, ...ofValues].join(', and ');
}
