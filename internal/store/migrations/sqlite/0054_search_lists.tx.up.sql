-- SQLite keeps its trigger: this file only keeps the numbers alike.
SELECT 1;
