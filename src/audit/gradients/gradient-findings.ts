import { findingsOf, type Finding, type FindingWords } from '../findings.js';
import type { JudgedGradient } from './judge-gradient.js';

/** The words of findings of gradients, but for the arithmetic. */
const gradientWords: Omit<FindingWords, 'arithmetic'> = {
  zeros: 'where nothing adds to them',
  prefixesTests: true,
  countsRows: false,
  sums: {
    dq: 'the sum of dQ over the queries is off',
    dk: 'Σ dK over the keys is off, as where Σ dS of a row is not 0',
    dv: 'Σ dV is not Σ dO',
    dbias: 'the sum of dBias over its queries is off',
  },
};

/** The clauses on columns whose sum is off, of a gradient's sample of rows. */
function sampledSums({ quantity: { name, prose } }: JudgedGradient): FindingWords['sums'] {
  return { [name]: `the sum of ${prose} over the rows of the sample is off` };
}

/** Attributes ⟨Q, dQ⟩ ≠ ⟨K, dK⟩ to dQ where dQ fails and dK does not, except by that. */
function withPairingPlaced(findings: readonly Finding[]): readonly Finding[] {
  const isPairing = ({ test }: Finding) => test.endsWith('-pairing');
  const failing = new Set(
    findings.filter((one) => !isPairing(one)).map(({ quantity }) => quantity),
  );
  if (failing.has('dk') || !failing.has('dq')) return findings;
  return findings.map((one) =>
    isPairing(one) ? { ...one, quantity: 'dq', test: 'dq-pairing' } : one,
  );
}

/** All that the tests found wrong with gradients, one after the other; of each the finding that explains most first. */
export function gradientFindings(
  judged: readonly JudgedGradient[],
  arithmetic: string,
): readonly Finding[] {
  const found = judged.flatMap((one) => {
    const sums = one.isSample ? sampledSums(one) : gradientWords.sums;
    return findingsOf([one], { ...gradientWords, arithmetic, sums });
  });
  return withPairingPlaced(found);
}
