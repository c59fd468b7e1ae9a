import type { LinkAudit, LinkCheck, LinkContractName } from '../../../audit/index.js';
import type { ReportHead } from '../audit-report.js';
import { toReported, type Reported } from '../report-number.js';
import type { ReportWarning } from '../reported/problem.js';

/** A tensor of a link, and the file it came from. */
export interface LinkTensor {
  /** Its name in the contract. */
  readonly name: string;
  readonly path: string;
  readonly tensor: string;
}

/** The report of a link of the decode chain: link.schema.json. */
export interface LinkReport {
  readonly kind: 'link-audit';
  readonly schemaVersion: 1;
  readonly tool: ReportHead['tool'];
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly seconds: number;
  readonly inputs: {
    readonly problem: ReportHead['inputs']['problem'];
    readonly outputs: readonly LinkTensor[];
    readonly command: string | null;
  };
  readonly contract: LinkContractName;
  readonly problem: {
    /** Sizes and settings in one sentence. */
    readonly description: string;
    readonly settings: LinkAudit['settings'];
  };
  readonly verdict: LinkAudit['verdict'];
  readonly warnings: readonly ReportWarning[];
  readonly checks: readonly Reported<LinkCheck>[];
  readonly arithmetic: string;
  readonly falseAlarmRate: number | null;
}

/** The origin of the tensors of a link, and the time that its audit took. */
export interface LinkProvenance {
  /** The tool's version. */
  readonly version: string;
  readonly problem: { readonly path: string; readonly sha256: string };
  readonly tensors: readonly LinkTensor[];
  /** Names in the file that nothing used. */
  readonly unused: readonly string[];
  readonly seconds: number;
  /** Default: now. */
  readonly created?: Date;
}

/** The report of an audit of a link, which shares no data with it. */
export function createLinkReport(audit: LinkAudit, provenance: LinkProvenance): LinkReport {
  const { contract, description, settings, checks, verdict, arithmetic, falseAlarmRate } = audit;
  const { unused } = provenance;
  return {
    kind: 'link-audit',
    schemaVersion: 1,
    tool: { name: 'flashproof', version: provenance.version },
    created: (provenance.created ?? new Date()).toISOString(),
    seconds: provenance.seconds,
    inputs: {
      problem: { ...provenance.problem },
      outputs: provenance.tensors.map((one) => ({ ...one })),
      command: null,
    },
    contract,
    problem: { description, settings: { ...settings } },
    verdict: structuredClone(verdict),
    warnings:
      unused.length === 0
        ? []
        : [
            {
              kind: 'unknown-tensor',
              names: [...unused],
              statement: `the contract ${contract} had no use for it here`,
            },
          ],
    checks: checks.map((one) => toReported(one)),
    arithmetic,
    falseAlarmRate,
  };
}
