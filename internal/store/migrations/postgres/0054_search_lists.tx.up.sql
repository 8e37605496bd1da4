-- bunx.FoldTotals adds the lists that get an index: the condition of a trigger was read again by each statement that changed a total.
DROP TRIGGER tc_search_list ON tc_totals;
DROP FUNCTION tc_search_list();
