export {
  describeViolation,
  validateAuditsReport,
  validateBoundReport,
  validateCheckReport,
  validateInvarianceReport,
  validateReport,
} from './validate-report.js';
