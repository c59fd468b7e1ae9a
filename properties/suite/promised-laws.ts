import type { PremiseDeclaration } from '../../src/audit/index.js';
import { RequestError } from '../../src/request-error.js';
import { lawIds, laws, type Law, type LawId, type LawStrength } from '../laws/index.js';

type PromisedLaws = Readonly<Partial<Record<LawId, LawStrength | 'none'>>>;

/** Laws to the last bit that rows with a common maximum do not obey: each depends on the others' keys. */
const lawsOfRows: readonly LawId[] = [
  'masked-keys',
  'masked-nan-keys',
  'nan-containment',
  'query-order',
  'decode-equals-prefill',
];

/** What a declared arithmetic leaves of the laws that kernels usually obey to the last bit. */
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
 * The name as one of those known.
 * @throws RequestError for another, with all of them
 */
export function knownName<T extends string>(what: string, name: string, known: readonly T[]): T {
  const found = known.find((candidate) => candidate === name);
  if (found === undefined)
    throw new RequestError(
      `there is no ${what} ${JSON.stringify(name)}; choose from ${known.join(', ')}`,
    );
  return found;
}

/** What decides of how well a kernel obeys laws that it says nothing of. */
interface KernelConduct {
  /** What it declares of its arithmetic whatever the problem. */
  readonly declared: PremiseDeclaration;
  /** Whether its gradients have the same bits again. */
  readonly deterministic: boolean;
}

/**
 * The strength of every law: as promised, else the law's usual one, as far as the kernel's arithmetic and its orders of
 * sums leave it.
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
