import { RequestError } from '../../../src/request-error.js';
import type { Fa4Configuration, Fa4Format } from '../configuration.js';
import { exponentialVariants } from './exponential-variants.js';
import { fp8Variants, operandVariants } from './operand-variants.js';
import { maskVariants, scoreVariants } from './score-variants.js';
import { maximumVariants, rescaleVariants } from './maximum-variants.js';
import { splitVariants, sumVariants, weightVariants } from './sum-variants.js';
import type { KernelVariant } from './variant.js';

/** The setting's value for the kernel without a bug. */
export const noVariant = 'none';

/** FlashAttention-4's forward with bugs, published ones and synthetic ones, one each. */
export const kernelVariants: readonly KernelVariant[] = [
  ...scoreVariants,
  ...maskVariants,
  ...maximumVariants,
  ...exponentialVariants,
  ...weightVariants,
  ...rescaleVariants,
  ...sumVariants,
  ...operandVariants,
  ...splitVariants,
  ...fp8Variants,
];

/** The variant of an id. @throws RequestError for an unknown one, with all ids. */
export function findKernelVariant(id: string): KernelVariant {
  const variant = kernelVariants.find((known) => known.id === id);
  if (variant === undefined)
    throw new RequestError(
      `no variant ${JSON.stringify(id)}; there are ${kernelVariants.map(({ id }) => id).join(', ')}`,
    );
  return variant;
}

/** The variant that settings choose; null for none. @throws RequestError for an unknown one. */
export function variantSetting(settings: ReadonlyMap<string, string>): KernelVariant | null {
  const id = settings.get('variant') ?? noVariant;
  return id === noVariant ? null : findKernelVariant(id);
}

/** @throws RequestError for a variant that a configuration cannot have. */
export function checkVariantApplies(
  { id, objection }: KernelVariant,
  configuration: Fa4Configuration,
  format: Fa4Format,
): void {
  const what = objection(configuration, format);
  if (what !== null) throw new RequestError(`variant ${id}: ${what}`);
}
