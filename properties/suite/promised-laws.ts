import type { PremiseDeclaration } from '../../src/audit/index.js';
import { RequestError } from '../../src/request-error.js';
import { lawIds, laws, type Law, type LawId, type LawStrength } from '../laws/index.js';

type PromisedLaws = Readonly<Partial<Record<LawId, LawStrength | 'none'>>>;

/** Laws to the last bit that fail where rows share a maximum: each row depends on the others' keys. */
const lawsOfRows: readonly LawId[] = [
  'masked-keys',
  'masked-nan-keys',
  'nan-containment',
  'query-order',
  'decode-equals-prefill',
];

/** Strengths of the laws, usually obeyed to the last bit, that a declared arithmetic weakens. */
function declaredLaws({
  outputRounding,
  maximum,
  pvAccumulator,
  partials,
}: PremiseDeclaration): Partial<Record<LawId, LawStrength | 'none'>> {
  // Sums in fp16 underflow, and overflow, where those in fp32 do not.
  const ofScaling: readonly LawId[] = [pvAccumulator, partials].includes('fp16')
    ? ['value-scaling']
    : [];
  const ofRows = maximum === 'group' ? lawsOfRows : [];
  const weakened = outputRounding === 'stochastic' ? lawIds : [...ofRows, ...ofScaling];
  return Object.fromEntries(
    weakened
      .filter((id) => laws[id].usual === 'bits')
      .map((id) => [id, laws[id].strengths.includes('bound') ? 'bound' : 'none']),
  );
}

/**
 * The name, if it is known.
 * @throws RequestError for another, with all known ones
 */
export function knownName<T extends string>(what: string, name: string, known: readonly T[]): T {
  const found = known.find((candidate) => candidate === name);
  if (found === undefined)
    throw new RequestError(
      `there is no ${what} ${JSON.stringify(name)}; choose from ${known.join(', ')}`,
    );
  return found;
}

/** Facts that decide the strength of laws about which the kernel says nothing. */
interface KernelConduct {
  /** The arithmetic that it declares for every problem. */
  readonly declared: PremiseDeclaration;
  /** Whether its gradients are the same bits in every run. */
  readonly deterministic: boolean;
}

/**
 * The strength of every law: as promised, else the law's usual one, unless the kernel's arithmetic or its order of sums
 * weakens it.
 * @throws RequestError for an unknown law, or a strength that it does not have
 */
export function promisedLaws(
  given: PromisedLaws = {},
  { declared, deterministic }: KernelConduct,
): Readonly<Record<LawId, LawStrength | 'none'>> {
  const promised: PromisedLaws = { ...declaredLaws(declared), ...given };
  for (const [id, strength] of Object.entries(promised)) {
    const { strengths } = laws[knownName('law', id, lawIds)];
    knownName(`promise for ${id}`, strength, [...strengths, 'none'] as const);
  }
  const usual = (id: LawId): LawStrength | 'none' => {
    const law: Law = laws[id];
    const isOpen = law.ofGradients === true && !deterministic && law.strengths.includes('bound');
    return isOpen && law.usual === 'bits' ? 'bound' : law.usual;
  };
  const entries = lawIds.map((id) => [id, promised[id] ?? usual(id)] as const);
  return Object.fromEntries(entries) as Readonly<Record<LawId, LawStrength | 'none'>>;
}
