NAME three
ROWS
 N value
 L room
 G pair
COLUMNS
 MARK0 'MARKER' 'INTORG'
 lamp value -3 room 1
 lamp pair -1
 rope value -2 room 1
 rope pair 2
 tent value 1.5 room 1
 MARK1 'MARKER' 'INTEND'
RHS
 RHS room 2 pair 0
BOUNDS
 BV BND lamp
 BV BND rope
 BV BND tent
ENDATA
