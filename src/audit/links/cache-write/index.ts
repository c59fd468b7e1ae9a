export { auditCacheWrite } from './audit-cache-write.js';
