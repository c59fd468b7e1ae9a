import {
  exp2Tunings,
  fragmentColumns,
  fragmentsPerRow,
  polynomialShare,
  usesPolynomial,
  type Exp2Pattern,
  type Exp2Tuning,
} from '../../../kernels/index.js';
import { RequestError } from '../../request-error.js';

/** Which columns of a tile row a tuning entry of FlashAttention-4 gives to the polynomial. */
export interface TuningLanes {
  /** As in d128-causal-1cta-sm_100. */
  readonly name: string;
  readonly pattern: Exp2Pattern;
  /** Share of the row's 128 columns, from 0 to 1. */
  readonly polynomialShare: number;
  /** By fragment of 32 columns, a letter per column: p for the polynomial, h for the hardware. */
  readonly fragments: readonly string[];
  /** Neighbouring columns of which one is computed by each. */
  readonly mixedNeighbours: number;
}

/** The name of a tuning entry, made of what it holds for. */
export function tuningName({ headDim, causal, ctas, architecture, inputBits }: Exp2Tuning): string {
  return [
    `d${headDim}`,
    causal ? 'causal' : 'full',
    `${ctas}cta`,
    ...(architecture === null ? [] : [architecture]),
    ...(inputBits === 8 ? ['fp8'] : []),
  ].join('-');
}

/** The names of all tuning entries. */
export const tuningNames: readonly string[] = exp2Tunings.map(tuningName);

/**
 * The lanes of the tuning entry of that name, or of all.
 * @throws RequestError for a name that no entry has
 */
export function tuningLanes(name?: string): TuningLanes[] {
  if (name !== undefined && !tuningNames.includes(name))
    throw new RequestError(
      `no tuning entry ${JSON.stringify(name)}; known are ${tuningNames.join(', ')}`,
    );
  return exp2Tunings
    .filter((tuning) => name === undefined || tuningName(tuning) === name)
    .map((tuning) => {
      const { pattern } = tuning;
      const fragments = Array.from({ length: fragmentsPerRow }, (_, fragment) =>
        Array.from({ length: fragmentColumns }, (_, k) =>
          usesPolynomial(pattern, fragment, k) ? 'p' : 'h',
        ).join(''),
      );
      const row = fragments.join('');
      return {
        name: tuningName(tuning),
        pattern,
        polynomialShare: polynomialShare(pattern),
        fragments,
        mixedNeighbours: [...row].filter((lane, i) => i > 0 && lane !== row[i - 1]).length,
      };
    });
}
