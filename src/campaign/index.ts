export {
  assembleAudits,
  auditRequest,
  joinAudits,
  runAuditUnits,
  type AuditRequest,
  type AuditUnitOptions,
} from './audit-campaign.js';
export { assembleCheck, joinCheck, type CheckFindings } from './assemble-check.js';
export {
  plainJson,
  requestFingerprint,
  type CampaignCommand,
  type CampaignRequest,
} from './campaign-request.js';
export { checkRequest, checkUnits, type CheckRequest, type CheckUnit } from './check-request.js';
export {
  assembleConform,
  conformRequest,
  conformShard,
  joinConform,
  runConformUnits,
  type ConformRequest,
  type ConformShard,
} from './conform-campaign.js';
export { fromUnits, joinParts, type JoinedParts } from './join-parts.js';
export { openJournal, readJournal, type JournalContent } from './journal.js';
export {
  partDocument,
  readPart,
  secondsOf,
  type Part,
  type PartFile,
  type PartVerdict,
} from './part.js';
export {
  joinProfile,
  profileRequest,
  runProfileUnits,
  type ProfileRequest,
  type ProfileShard,
} from './profile-campaign.js';
export { runCheckUnits, type CheckUnitOptions } from './run-check-units.js';
export { describeShard, parseShard, wholeShard, type Shard } from './shard.js';
export {
  resolveShard,
  undividedNotice,
  type Environment,
  type ShardRequest,
} from './shard-environment.js';
export { createUnitLog, type CampaignHead, type UnitLog, type UnitRecord } from './unit-log.js';
