-- How often the catalogue of images changed, for whoever mirrors it.
INSERT INTO revisions (name, number) VALUES ('images', 0);
