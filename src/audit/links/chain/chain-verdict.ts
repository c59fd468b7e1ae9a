import { listed, reasonClause, stated, type StatedVerdict } from '../../../words/index.js';
import { everywhere, type Place } from '../../rows/index.js';
import type { FoundCause } from '../../conduct/causes.js';
import type { LinkCheck, LinkFinding, LinkVerdict } from '../link-audit.js';

/** A link of a chain, judged by what it read. */
export interface ChainLinkVerdict {
  readonly name: string;
  /** The verdict of its audit; null where there is none. */
  readonly verdict: StatedVerdict | null;
  /** The cause of a failure; null where none was looked for. */
  readonly cause: (Omit<FoundCause, 'place'> & { readonly place: Place | null }) | null;
  /** Whether the first finding against it holds for any roundings. */
  readonly isWorstCase: boolean;
  /** The reason why it was not judged, in a clause; null where it was. */
  readonly unjudged: string | null;
  /** Whether that reason is that nothing of it is in the dump, which keeps no chain from passing. */
  readonly isAbsent: boolean;
}

/** The judgement of a chain: the checks between links, each before the link that reads, and the links. */
export interface ChainEvidence {
  readonly links: readonly ChainLinkVerdict[];
  /** `link`: the index of the later of its two links. */
  readonly joints: readonly { readonly link: number; readonly check: LinkCheck }[];
}

interface Failure {
  readonly finding: LinkFinding;
  readonly reason: string;
  readonly cause: FoundCause;
}

function ofJoint({ name, statement, isWorstCase }: LinkCheck): Failure {
  const sentence = statement ?? '';
  return {
    finding: { quantity: name, test: 'link', isWorstCase, statement: sentence },
    reason: sentence,
    cause: {
      id: 'link-input-differs',
      equivalents: [],
      sentence,
      place: everywhere,
      evidence: [],
    },
  };
}

function ofLink({ name, verdict, cause, isWorstCase }: ChainLinkVerdict): Failure {
  const said = verdict === null ? '' : reasonClause(verdict);
  const reason = `${name}: ${said}`;
  const found = cause ?? {
    id: 'unexplained',
    equivalents: [],
    sentence: 'the cause is unexplained',
    place: everywhere,
    evidence: [],
  };
  return {
    finding: { quantity: name, test: 'link', isWorstCase, statement: reason },
    reason,
    cause: {
      id: found.id,
      equivalents: found.equivalents,
      place: found.place ?? everywhere,
      sentence: `${name}: ${found.sentence}`,
      evidence: found.evidence,
    },
  };
}

/** What fails, in the order of the chain: between links before the later link. */
function failuresOf({ links, joints }: ChainEvidence): Failure[] {
  return links.flatMap((link, i) => [
    ...joints
      .filter(({ link: later, check }) => later === i && check.wrong > 0)
      .map(({ check }) => ofJoint(check)),
    ...(link.verdict?.status === 'FAIL' ? [ofLink(link)] : []),
  ]);
}

/** "write and attention are right, each given what it read"; nothing where none is. */
function rightClause(links: readonly ChainLinkVerdict[]): string[] {
  const right = links.filter(({ verdict }) => verdict?.status === 'PASS').map(({ name }) => name);
  if (right.length === 0) return [];
  return [`${listed(right)} ${right.length === 1 ? 'is' : 'are'} right given what was read`];
}

function unjudgedClauses({ links, joints }: ChainEvidence): string[] {
  return [
    ...links.flatMap(({ name, unjudged }) =>
      unjudged === null ? [] : [`${name} not judged: ${unjudged}`],
    ),
    ...joints.flatMap(({ check: { label, unjudged } }) =>
      unjudged === null ? [] : [`${label} not compared: ${unjudged}`],
    ),
  ];
}

/** "5 tensors are what the link before left". */
function jointClause({ joints }: ChainEvidence): string[] {
  const compared = joints.filter(({ check }) => check.unjudged === null).length;
  if (compared === 0) return ['nothing that one link handed to another is in the dump twice'];
  return [
    compared === 1
      ? '1 tensor is what the link before left'
      : `${compared} tensors are what links before left`,
  ];
}

/**
 * The verdict on a chain: it fails with the first thing that fails, in the order of the chain, and passes where every link that is in
 * the dump passes by what it read, and nothing differs on its way from one link to the next.
 */
export function reachChainVerdict(
  evidence: ChainEvidence,
  notes: readonly string[] = [],
): LinkVerdict {
  const { links } = evidence;
  const [first, ...others] = failuresOf(evidence);
  const isOpen = ({ unjudged, isAbsent }: ChainLinkVerdict) => unjudged !== null && !isAbsent;
  const judged = !links.some(isOpen) && links.some(({ verdict }) => verdict !== null);
  const rest = [...rightClause(links), ...unjudgedClauses(evidence)];
  if (first !== undefined) {
    const also = others.map(({ reason }) => reason);
    return {
      pass: false,
      ...stated('FAIL', `${[first.reason, ...also, ...rest].join('; ')}.`),
      judged,
      findings: [first, ...others].map(({ finding }) => finding),
      diagnosis: first.cause,
      premise: null,
      notes,
    };
  }
  const none = { judged, findings: [], diagnosis: null, premise: null, notes } as const;
  if (!judged)
    return { pass: false, ...stated('NOT JUDGED', `${rest.join('; ') || 'no link'}.`), ...none };
  const [right = [], ...left] = [rightClause(links), unjudgedClauses(evidence)];
  const clauses = [...right, ...jointClause(evidence), ...left.flat()];
  return { pass: true, ...stated('PASS', `${clauses.join('; ')}.`), ...none };
}
