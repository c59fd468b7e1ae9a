import type { Problem } from '../../../problem/index.js';
import { auditGradients } from '../audit-gradients.js';
import type { GradientTensors } from '../gradient-tensors.js';
import type { GradientAuditOptions } from '../plan-gradients.js';
import { describeGradientDeclaration, type GradientDeclaration } from './gradient-declaration.js';
import { formatNumber } from '../../../words/index.js';

/** Whether a narrower kind of kernel may give these gradients. */
export interface GradientPremiseFit {
  readonly declared: GradientDeclaration;
  /** Whether they pass all tests by these premises. */
  readonly isConsistent: boolean;
  /** The root mean square error found over the one expected, by gradient. */
  readonly spread: Readonly<Record<string, number>>;
  /** The largest share of a bound that an element uses. */
  readonly worst: number;
}

/**
 * Narrower kinds of kernels than any: with a certain source of D, and of the P that dS is made of, or in fp32 a certain rounding
 * of sums; under a softcap with a certain tanh.
 */
function narrower({ softcap, q }: Problem): readonly GradientDeclaration[] {
  // P of fp32 is not rounded, and sums of fp32 need not be those of tensor cores.
  const other = q.format === 'fp32' ? { sums: 'nearest' } : { weights: 'fp32' };
  const ofDelta = ['stored-output', 'weights'].flatMap((delta) => [{ delta }, { delta, ...other }]);
  if (softcap === null) return ofDelta;
  return ofDelta.map((declared) => ({ ...declared, tanh: 'hardware' }));
}

/**
 * Fits of narrower premises to gradients, consistent or not: statements about a kernel that passes, never a reason for it
 * to pass. Empty where the gradients fail by the premises that are given: nothing follows from wrong gradients. Each
 * takes as long as an audit.
 * @throws RequestError as `auditGradients`
 */
export function fitGradientPremises(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions = {},
): readonly GradientPremiseFit[] {
  const audit = (declared: GradientDeclaration) =>
    auditGradients(problem, tensors, {
      ...options,
      diagnose: false,
      declared: { ...options.declared, ...declared },
    });
  if (!audit({}).verdict.pass) return [];
  return narrower(problem).map((declared) => {
    const { verdict, gradients } = audit(declared);
    const spread = gradients.map(
      ({ quantity, spread: { measured, expected } }) =>
        [quantity.name, expected === 0 ? 0 : measured / expected] as const,
    );
    return {
      declared,
      isConsistent: verdict.pass,
      spread: Object.fromEntries(spread),
      worst: Math.max(...gradients.map(({ elements }) => elements.worstRatio)),
    };
  });
}

/**
 * Describes fits, a sentence each.
 * @param fits none where the gradients fail
 */
export function describeGradientFits(fits: readonly GradientPremiseFit[]): readonly string[] {
  if (fits.length === 0)
    return ['No narrower premises are tried: of gradients that fail nothing follows.'];
  return fits.map(({ declared, isConsistent, spread }) => {
    const ratios = Object.entries(spread).map(([name, ratio]) => `${name} ${formatNumber(ratio)}`);
    return `${isConsistent ? 'Consistent' : 'Not consistent'} with ${describeGradientDeclaration('a kernel', declared)}: rms over that to expect ${ratios.join(', ')}.`;
  });
}
