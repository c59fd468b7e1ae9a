export { auditPrologue, type GivenPrologue, type JudgedPart } from './audit-prologue.js';
