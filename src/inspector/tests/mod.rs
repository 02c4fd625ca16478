mod golden;
mod properties;
mod samples;
mod versions;
