export {
  auditFiles,
  type AuditedFiles,
  type AuditFilesRequest,
  type AuditWords,
} from './audit-files.js';
export { blobFiles, type BlobFiles } from './blob-files.js';
export { webCodecs } from './web-codecs.js';
export {
  judgedNames,
  threadPool,
  threadWork,
  type StartThreads,
  type ThreadWork,
} from '../jobs/audit/index.js';
export { RequestError } from '../request-error.js';
