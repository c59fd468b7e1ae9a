export {
  auditFiles,
  type AuditedFiles,
  type AuditFilesRequest,
  type AuditWords,
} from './audit-files.js';
export { likelyTensors } from '../io/tensors/index.js';
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
export {
  createLaboratory,
  type Experiment,
  type ExperimentOutputs,
  type ExperimentRequest,
} from './laboratory.js';
export type { TechniqueTable } from '../attribution/index.js';
export {
  recordTimeline,
  timelineMutants,
  type Timeline,
  type TimelineEvent,
  type TimelineMutant,
  type TimelineRequest,
  type TimelineTrack,
} from './timeline.js';
