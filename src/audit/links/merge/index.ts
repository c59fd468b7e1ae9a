export { auditMerge, type GivenMerge, type MergeShape } from './audit-merge.js';
