import type { LinkCheck, LinkVerdict } from '../../../audit/index.js';
import type { VerdictStatus } from '../../../words/index.js';
import type { AuditReport } from '../audit-report.js';
import { toReported, type Reported } from '../report-number.js';
import type { ReportWarning } from '../reported/problem.js';
import type { LinkProvenance, LinkReport } from './link-report.js';

/** A link of a chain: the report of its own audit, by what it read. */
export interface ChainLink {
  readonly name: string;
  readonly contract: string;
  /** `ERROR` where what is in the dump cannot be judged. */
  readonly status: VerdictStatus | 'ERROR';
  /** The verdict, or why there is none, in a sentence or a clause. */
  readonly sentence: string;
  /** As of a file of this link alone; null where there is none. */
  readonly report: AuditReport | LinkReport | null;
}

/** The distance of a chain's output from exact attention on other inputs than attention had. */
export interface ChainFigure {
  /** Exact attention on which inputs, in words. */
  readonly what: string;
  /** The norm of the difference divided by that of exact attention. */
  readonly relative: number;
  /** The largest difference of an element. */
  readonly largest: number;
}

/** What the approximations that a chain declares cost: figures, which no verdict depends on. */
export interface ChainCost {
  /** The tensor of the dump that is the end of the chain. */
  readonly end: string;
  /** The first is the distance that attention itself is answerable for. */
  readonly figures: readonly ChainFigure[];
}

/** The report of a dump of several links of the decode chain: chain.schema.json. */
export interface ChainReport extends Omit<
  LinkReport,
  'kind' | 'contract' | 'arithmetic' | 'falseAlarmRate' | 'verdict'
> {
  readonly kind: 'chain-audit';
  readonly verdict: LinkVerdict;
  readonly links: readonly ChainLink[];
  readonly cost:
    (Omit<ChainCost, 'figures'> & { readonly figures: Reported<ChainFigure>[] }) | null;
  /** The reason why there are no figures; null where there are. */
  readonly costUnknown: string | null;
}

/** What an audit of a chain found. */
export interface JudgedChain {
  readonly verdict: LinkVerdict;
  readonly links: readonly ChainLink[];
  /** What one link left and another read. */
  readonly checks: readonly LinkCheck[];
  /** Figures, or the reason why there are none. */
  readonly cost: ChainCost | string;
}

/** The warnings of a link's own report, by names with the link before them. */
function warningsOf({ name, report }: ChainLink): ReportWarning[] {
  const own = (word: string) =>
    word.startsWith('metadata ')
      ? `metadata ${name}.${word.slice('metadata '.length)}`
      : `${name}.${word}`;
  return (report?.warnings ?? []).map((one) => ({ ...one, names: one.names.map(own) }));
}

/** The report of an audit of a chain. */
export function createChainReport(
  { verdict, links, checks, cost }: JudgedChain,
  provenance: Omit<LinkProvenance, 'tensors'>,
): ChainReport {
  const { unused, version, problem, seconds, created = new Date() } = provenance;
  return {
    kind: 'chain-audit',
    schemaVersion: 1,
    tool: { name: 'flashproof', version },
    created: created.toISOString(),
    seconds,
    inputs: { problem: { ...problem }, outputs: [], command: null },
    problem: {
      description: `a decode chain: ${links.map(({ name }) => name).join(', ')}`,
      settings: { links: links.length },
    },
    verdict: structuredClone(verdict),
    warnings: [
      ...(unused.length === 0
        ? []
        : [
            {
              kind: 'unknown-tensor' as const,
              names: [...unused],
              statement: 'no link of this chain has such a name',
            },
          ]),
      ...links.flatMap(warningsOf),
    ],
    checks: checks.map((one) => toReported(one)),
    links: structuredClone(links),
    cost:
      typeof cost === 'string'
        ? null
        : { end: cost.end, figures: cost.figures.map((one) => toReported(one)) },
    costUnknown: typeof cost === 'string' ? cost : null,
  };
}
