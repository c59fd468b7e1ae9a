import type { FileReport } from '../../json/index.js';
import { renderAudit, type AuditRenderOptions } from '../audit.js';
import { renderChain } from './chain.js';
import { renderLink } from './link.js';
import { renderRecurrent } from './recurrent.js';

/** The report of one file of any kind for a terminal, newline at the end. */
export function renderFileReport(report: FileReport, options: AuditRenderOptions = {}): string {
  if (report.kind === 'chain-audit') return renderChain(report, options);
  if (report.kind === 'link-audit') return renderLink(report, options);
  return report.kind === 'recurrent-audit'
    ? renderRecurrent(report, options)
    : renderAudit(report, options);
}
