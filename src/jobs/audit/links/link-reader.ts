import type { LinkAudit } from '../../../audit/index.js';
import type { LinkFile, LinkNames } from '../../../io/tensors/index.js';
import type { AuditSettings } from '../audit-settings.js';

/** A contract as files pose it. */
export interface LinkReader {
  /** The names of its tensors and settings. */
  readonly names: LinkNames;
  /** Reads a link and judges it. @throws RequestError for a file that holds none */
  readonly judge: (
    file: LinkFile,
    settings: Pick<AuditSettings, 'falseAlarmRate' | 'rows'>,
  ) => Promise<LinkAudit>;
}
