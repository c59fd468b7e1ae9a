import { alignColumns } from '../align-columns.js';
import type { Attribution } from './attribution.js';

/** Which error a table shares out, and how: added in the order of the kernel, or each alone. */
export interface ShareChoice {
  readonly error: 'whole' | 'beforeRounding';
  readonly share: 'share' | 'shareAlone';
}

function percentage(share: number | undefined): string {
  if (share === undefined) return '';
  const text = (100 * share).toFixed(1);
  return text === '-0.0' ? '0.0' : text;
}

/**
 * A share of every technique on several problems, in per cent, as plain text: a line for each
 * problem, with its error (RMS in units of Σ p|v|) and its largest error in ulps before the shares,
 * and the interaction after shares of techniques alone. A technique that a kernel does not have, or that
 * has no part in the error, is left blank.
 */
export function renderShares(
  attributions: readonly (readonly [name: string, attribution: Attribution])[],
  { error, share }: ShareChoice,
): string {
  const names = new Set(
    attributions.flatMap(([, { techniques }]) => techniques.map(({ technique }) => technique)),
  );
  const isAlone = share === 'shareAlone';
  const rows = attributions.map(([name, attribution]) => {
    const { relative, ulps } = error === 'whole' ? attribution.total : attribution.beforeRounding;
    return [
      name,
      relative.rms.toExponential(1),
      ulps.max.toExponential(1),
      ...[...names].map((name) => {
        const part = attribution.techniques.find(({ technique }) => technique === name);
        return percentage(part?.[error]?.[share]);
      }),
      ...(isAlone ? [percentage(attribution.interaction[error])] : []),
    ];
  });
  const heads = ['', 'RMS', 'max ulp', ...names, ...(isAlone ? ['interaction'] : [])];
  return alignColumns([heads, ...rows]).join('\n');
}
